// The form: options that mean nothing now are set aside, data sets follow the model, the first error has the focus.
// What the workers say comes from the server; this only applies it, and never touches what was typed.

const form = document.getElementById("job-form");

function control(name) {
  return form.elements.namedItem(name);
}

function applyNotes() {
  for (const notes of form.querySelectorAll("[data-notes]")) {
    const input = control(notes.dataset.notes);
    const field = notes.closest(".field");
    if (!input || !field) continue;
    const isAside = "aside" in notes.dataset;
    // What has the focus stays usable: taking it away would throw the reader out of the field. So does a tick: a
    // disabled box is not sent, and would count as cleared.
    input.disabled = isAside && input !== document.activeElement && !input.checked;
    field.classList.toggle("field--aside", isAside);
    // What stops the job must be seen, so advanced options open around it.
    if ("refused" in notes.dataset) input.closest("details")?.setAttribute("open", "");
    if ("refused" in notes.dataset) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    if (input.options && notes.dataset.notes !== "dataset") closeChoices(input, (notes.dataset.closed ?? "").split(" "));
  }
}

function closeChoices(select, closed) {
  for (const option of select.options) option.disabled = closed.includes(option.value) && !option.selected;
}

function followModel({ choose }) {
  const [model, dataset] = [control("model"), control("dataset")];
  if (!model?.options || !dataset?.options) return;
  const kinds = (model.selectedOptions[0]?.dataset.kind ?? "").split(" ").filter(Boolean);
  for (const option of dataset.options) {
    option.hidden = option.disabled = kinds.length > 0 && !kinds.includes(option.dataset.kind);
  }
  if (choose && dataset.selectedOptions[0]?.disabled) {
    dataset.value = [...dataset.options].find((option) => !option.disabled)?.value ?? "";
  }
}

form.addEventListener("input", ({ target }) => target.name === "model" && followModel({ choose: true }));
form.addEventListener("submit", () => {
  const button = document.getElementById("submit");
  button.textContent = button.dataset.busy;
});
document.addEventListener("htmx:afterSettle", () => applyNotes());
form.addEventListener("focusout", () => setTimeout(applyNotes));

followModel({ choose: false });
applyNotes();
if (document.getElementById("form-errors")) form.querySelector("[aria-invalid=true]")?.focus();
