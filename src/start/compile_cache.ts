import module from 'node:module';
import path from 'node:path';

/*
 * A program imports this before its other files, which it must import dynamically. Node.js then keeps the compiled code of this process
 * in a folder of the package, which is the one that `npm start` names, and every later start reads it there. It is in no folder that other
 * users may write to, such as /tmp, because its content is executed. Where this user may not write, nothing is cached.
 * NODE_COMPILE_CACHE names another folder, and NODE_DISABLE_COMPILE_CACHE=1 keeps nothing.
 */

// From src/start, or from dist/src/start in an installed package.
const root = path.join(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../..' : '../../..');
// Not imported by its name: a Node.js that does not have it would exit with a stack trace before node_version.ts reports the version.
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE ?? path.join(root, 'node_modules', '.cache'));
