// JSON from the server, or in one word why there is none: `away`, `database`, `gone` or `signedOut`.

export async function fetchJson(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
  if (answer?.redirected || answer?.status === 401) return { fault: "signedOut" };
  if (answer?.status === 503) return { fault: "database" };
  if (answer?.status === 404) return { fault: "gone" };
  const data = answer?.ok ? await answer.json().catch(() => null) : null;
  return data ? { data } : { fault: "away" };
}
