// Where the server's routes begin: below the path at which an application has mounted them, or at the root of a host.

export function rootOf(pathname: string): string {
  return pathname.replace(/\/(console)?$/, "");
}

/** Stands before every path of the server; empty where nothing is mounted. */
export const ROOT = typeof location === "undefined" ? "" : rootOf(location.pathname);
