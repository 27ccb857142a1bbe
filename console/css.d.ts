/** The bundler makes the style sheet a file of its own. */
declare module '*.css';
