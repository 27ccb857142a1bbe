/** The bundler writes the style sheet to a separate file. */
declare module '*.css';
