import { type Connection, connection } from '../../api/connection.ts';
import { parseWith, type Stored } from '../parse.ts';

/** A Connection as it is stored. */
export type StoredConnection = Stored<Connection>;

export const parseConnection = parseWith(connection.schema);
