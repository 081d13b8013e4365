import { type Tool, tool } from '../../api/tool.ts';
import { parseWith, type Stored } from '../parse.ts';

/** A Tool as it is stored. */
export type StoredTool = Stored<Tool>;

export const parseTool = parseWith(tool.schema);

/** What a Tool's children are made from. */
export type WrittenTool = Pick<Tool, 'metadata' | 'spec'>;
