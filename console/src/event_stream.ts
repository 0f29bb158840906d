// Server-sent events out of pieces of text that end anywhere. Pure.

/** Takes pieces; returns the data of each event that has ended. */
export class EventReader {
  private rest = "";

  read(piece: string): string[] {
    this.rest += piece;
    const parts = this.rest.split(/\r?\n\r?\n/);
    this.rest = parts.pop() ?? "";
    return parts.map(dataOf).filter((data) => data !== "");
  }
}

/** The text that one event of a streamed chat adds; an error that came in the stream is thrown. */
export function chatText(data: string): string {
  if (data === "[DONE]") return "";
  const part: unknown = JSON.parse(data);
  const { error, choices } = part as { error?: { message?: string }; choices?: { delta?: { content?: string } }[] };
  if (error) throw new Error(error.message ?? JSON.stringify(error));
  return choices?.[0]?.delta?.content ?? "";
}

function dataOf(event: string): string {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
