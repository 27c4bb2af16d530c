// The controls of smoothing, on a job's page and on the comparison: what is chosen, as the address and the server name it.

const how = document.getElementById("view-smooth");
const amount = document.getElementById("view-amount");

export function smoothing() {
  return how.value === "none" ? { smooth: "", amount: "" } : { smooth: how.value, amount: amount.value };
}

// Each way of smoothing has limits of its own, and an amount that it begins with.
function fitAmount() {
  const limits = JSON.parse(document.getElementById("smoothing-limits").textContent)[how.value];
  amount.disabled = !limits;
  if (!limits) return;
  [amount.min, amount.max] = limits;
  if (!amount.value || Number(amount.value) < limits[0] || Number(amount.value) > limits[1]) amount.value = limits[2];
}

how?.addEventListener("change", () => {
  amount.value = "";
  fitAmount();
});
if (how) fitAmount();
