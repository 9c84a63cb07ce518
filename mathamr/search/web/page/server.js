/* Requests to the server's JSON interface. */

/* What `path` answers, to `body` if there is one. Throws an Error whose message can be shown. */
export async function ask(path, body, signal) {
  const request = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { ...request, signal });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Error("The server does not answer; is mathamr serve still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(sentence(answer.error ?? `the server answers ${response.status} ${response.statusText}`));
  return answer;
}

function sentence(message) {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
