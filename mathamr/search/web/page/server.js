/* Requests to the server's JSON interface. */

/* What `path` answers, to `body` if there is one. Throws an Error whose message can be shown. */
export async function ask(path, body, signal) {
  return (await request(path, body, signal)).json();
}

/* The whole post `postId` of the index `name`. */
export const askPost = (postId, name, signal) =>
  ask(`api/posts/${encodeURIComponent(postId)}?index=${encodeURIComponent(name)}`, undefined, signal);

/* Saves what `path` answers to `body` as a file, under the name that the server gives it. */
export async function save(path, body) {
  const response = await request(path, body);
  const link = document.createElement("a");
  link.download = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition"))?.[1] ?? "results";
  link.href = URL.createObjectURL(await response.blob());
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser reads it after the click
}

async function request(path, body, signal) {
  const content = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { ...content, signal });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Error("The server does not answer; is mathamr serve still running?");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Error(sentence(answer.error ?? `the server answers ${response.status} ${response.statusText}`));
}

function sentence(message) {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
