import { messages, type PGlite } from '@electric-sql/pglite';

/**
 * Makes a PGlite whose PostgreSQL has stopped refuse every statement. PostgreSQL stops at once if it cannot write or sync
 * its log, as on a full or a broken disk. A server would be started again, and its clients would lose their connections.
 * PGlite ignores this, and goes on with what is left in memory: it acknowledges writes that it does not carry out.
 *
 * @param onStop called once, when PostgreSQL has stopped
 * @returns whether it has stopped
 */
export function refuseAfterStop(pglite: PGlite, onStop: (error: Error) => void): () => boolean {
  const causes: unknown[] = [];
  const hasStopped = (): boolean => causes.length > 0;
  const { Module } = pglite;
  const step = Module._PostgresMainLoopOnce;
  Module._PostgresMainLoopOnce = () => {
    try {
      step();
    } catch (error) {
      if (!isOfStatement(error)) causes.push(error);
      throw error; // PGlite ignores it
    }
  };
  const execute = pglite.execProtocolStream.bind(pglite);
  let refuse: ((message: Uint8Array) => messages.BackendMessage[]) | undefined;
  pglite.execProtocolStream = async (message, options) => {
    if (refuse !== undefined) return refuse(message);
    const answers: messages.BackendMessage[] = await execute(message, options).catch((error: unknown) => {
      if (hasStopped()) return [];
      throw error;
    });
    if (!hasStopped()) return answers;
    const told = answers.find((answer) => answer instanceof messages.DatabaseError);
    const text = `the embedded database has stopped${told === undefined ? '' : `: ${told.message}`}`;
    refuse = refuser(text);
    onStop(new Error(text, { cause: causes[0] }));
    return refuse(message);
  };
  return hasStopped;
}

/** Answers messages as a server does that ends: an error for each statement, and after it nothing until the next one. */
function refuser(text: string): (message: Uint8Array) => messages.BackendMessage[] {
  let refused = false;
  return (message) => {
    const answers: messages.BackendMessage[] = [];
    if (!refused) {
      const error = new messages.DatabaseError(text, 0, 'error');
      error.severity = 'FATAL';
      error.code = crashShutdown;
      answers.push(error);
    }
    const endsStatement = ['Q', 'S'].includes(String.fromCharCode(message[0] ?? 0)); // a query, or a sync
    if (endsStatement) answers.push(new messages.ReadyForQueryMessage(0, 'I'));
    refused = !endsStatement;
    return answers;
  };
}

/** The SQLSTATE of a server that stopped. Whether it carried out the statement before is not known. */
const crashShutdown = '57P02';

/** The status with which PGlite's PostgreSQL leaves a statement that has an error. */
const errorOfStatement = 100;

const isOfStatement = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'status' in error && error.status === errorOfStatement;
