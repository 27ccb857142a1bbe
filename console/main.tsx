import { render } from 'preact';
import { App } from './app.tsx';
import './style.css';

const element = document.getElementById('console');
if (element === null) throw new Error('The page has no place for the console.');
render(<App />, element);
