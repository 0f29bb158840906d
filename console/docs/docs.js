// Shows /openapi.json by Swagger UI. What is tried out goes to this server alone, with the header of its own pages.

const MARK = { "Trivium-Console": "1" };
const place = document.getElementById("docs");

function say(text) {
  const line = document.createElement("p");
  const link = document.createElement("a");
  line.textContent = `${text} `;
  link.href = "/console";
  link.textContent = "Go to the console.";
  line.append(link);
  place.replaceChildren(line);
}

async function show() {
  const answer = await fetch("/openapi.json", { headers: MARK });
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    return say(told.error ?? `The description cannot be read: status ${answer.status}.`);
  }
  SwaggerUIBundle({
    spec: await answer.json(),
    domNode: place,
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      if (new URL(request.url, location.href).origin === location.origin) {
        request.headers = { ...request.headers, ...MARK };
      }
      return request;
    },
  });
}

show().catch((error) => say(`The description cannot be shown: ${error.message}.`));
