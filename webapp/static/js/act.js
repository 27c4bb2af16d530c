// Acting on jobs: a button with `data-act` opens the page's one dialog for the jobs that it names, or for the ticked ones.

import { clear, ticked } from "./selection.js";

const dialog = document.getElementById("act-dialog");
const form = dialog?.querySelector("form");
const FIELD_OF = { priority: "priority", move: "queue", time_limit: "time_limit_s", tag: "tags", untag: "tags" };

function open(button) {
  const { act, jobs, one, many, text, submit, value } = button.dataset;
  const ids = jobs ? jobs.split(",") : ticked();
  form.elements.act.value = act;
  form.elements.jobs.value = ids.join(",");
  form.elements.reason.value = "";
  const title = ids.length === 1 ? one.replace("{id}", `#${ids[0]}`) : many.replace("{n}", ids.length);
  dialog.querySelector("[data-act-title]").textContent = title;
  dialog.querySelector("[data-act-text]").textContent = text ?? "";
  const send = dialog.querySelector("[data-act-submit]");
  send.textContent = submit;
  send.classList.toggle("button--bad-main", "bad" in button.dataset);
  for (const box of dialog.querySelectorAll("[data-act-field]")) {
    const isMeant = box.dataset.actField === FIELD_OF[act];
    const field = form.elements[box.dataset.actField];
    box.hidden = !isMeant;
    field.disabled = !isMeant;
    if (isMeant && value !== undefined) field.value = value;
  }
  button.closest("details.menu")?.removeAttribute("open");
  dialog.showModal();
  (form.querySelector("[data-act-field]:not([hidden]) :is(input, select)") ?? form.elements.reason).focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button && form) open(button);
});
form?.addEventListener("submit", () => clear());
