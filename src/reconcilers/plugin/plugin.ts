import { type Plugin, plugin } from '../../api/plugin.ts';
import { parseWith, type Stored } from '../parse.ts';

/** A Plugin as it is stored. */
export type StoredPlugin = Stored<Plugin>;

export const parsePlugin = parseWith(plugin.schema);
