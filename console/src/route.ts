// Which page an address names: what stands behind "#". Pure.

export const PARTS = ["now", "try", "requests", "workers", "configuration", "versions"] as const;
export type Part = (typeof PARTS)[number];

export type Route =
  | { page: "overview" }
  | { page: "model"; name: string; part: Part }
  | { page: "server" }
  | { page: "api" };

export function route(hash: string): Route {
  const [page, name, part] = hash.replace(/^#\/?/, "").split("/");
  if (page === "models" && name) {
    const known = PARTS.find((one) => one === part);
    return { page: "model", name: decoded(name), part: known ?? "now" };
  }
  if (page === "server" || page === "api") return { page };
  return { page: "overview" };
}

export function modelAddress(name: string, part: Part = "now"): string {
  return `#/models/${encodeURIComponent(name)}${part === "now" ? "" : `/${part}`}`;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
