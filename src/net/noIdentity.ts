/** There is no certificate to show yet. Nothing was sent. */
export class NoIdentityError extends Error {
  readonly code = 'OZ0_NO_IDENTITY';
}
