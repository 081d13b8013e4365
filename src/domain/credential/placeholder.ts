/**
 * What a tool gets in the place of a bound secret: 40 characters of [A-Za-z0-9], of which 32 are random (190 bits), made for
 * one pod and one secret, so that it is worth nothing elsewhere. All have one length, so none begins another. Pure.
 */

export const PLACEHOLDER_LENGTH = 40;
/** Random bytes that `makePlaceholder` needs: so many that running out of fair ones does not happen. */
export const PLACEHOLDER_ENTROPY_BYTES = 96;

const PREFIX = 'oz0held0';
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** The largest multiple of 62 below 256: higher bytes would make the first letters likelier. */
const FAIR = 248;

/** @throws RangeError when fewer than 32 of the bytes are fair: then nothing was random about them */
export function makePlaceholder(entropy: Uint8Array): string {
  let text = PREFIX;
  for (const byte of entropy) {
    if (text.length === PLACEHOLDER_LENGTH) break;
    if (byte < FAIR) text += ALPHABET[byte % ALPHABET.length];
  }
  if (text.length < PLACEHOLDER_LENGTH) throw new RangeError('not enough entropy for a placeholder');
  return text;
}
