/** Text for a terminal, of which no part can pose as something else. */

/** Control, invisible and direction-changing characters as escapes. */
export function plain(text: string, lines = false): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) =>
    lines && char === '\n' ? char : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows.map((row) => row.map((cell) => plain(cell)))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
}
