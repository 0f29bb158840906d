// Where programs find what this page shows, and everything else.

const PAGES: [string, string, string][] = [
  ["/docs", "All routes, to read and try", "Every route and every model, with examples that work."],
  ["/openapi.json", "The same for programs", "OpenAPI 3.1: for generators of clients, and other tools."],
  ["/metrics", "Metrics", "For Prometheus, in its text format."],
  ["/api/v1/overview", "The overview as JSON", "What this page shows; /api/v1/events is the same as a stream."],
];

const CLIENTS: [string, string, string][] = [
  ["Open Inference Protocol v2", "/v2", "Triton's and KServe's clients, JSON and binary; the same over gRPC."],
  ["OpenAI", "/v1", "Chats and completions of language models."],
  ["DJL Serving and TorchServe", "/predictions/MODEL", "A body as the handler takes it."],
];

export function ApiPage() {
  return (
    <>
      <h1>API</h1>
      <ul class="links">
        {PAGES.map(([address, title, text]) => (
          <li key={address}>
            <a href={address}>{title}</a>
            <code>{address}</code>
            <p>{text}</p>
          </li>
        ))}
      </ul>
      <h2>Clients that work here</h2>
      <ul class="links">
        {CLIENTS.map(([title, path, text]) => (
          <li key={title}>
            <b>{title}</b>
            <code>{location.origin + path}</code>
            <p>{text}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
