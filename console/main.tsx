import { render } from 'preact';
import { App } from './app.tsx';
import './style.css';

const place = document.getElementById('console');
if (place === null) throw new Error('The page has no place for the console.');
render(<App />, place);
