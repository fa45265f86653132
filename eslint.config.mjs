// ESLint for the scripts that the browser server runs in pages and for the local pages: npm install; make lint
import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['.venv/**', 'build/**', 'dist/**', '**/vendor/**'] },
  js.configs.recommended,
  {
    files: ['**/*.js'],
    languageOptions: { ecmaVersion: 2024, sourceType: 'script', globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'max-len': ['error', { code: 120 }],
      'max-lines': ['error', 300],
      'max-lines-per-function': ['error', { max: 50, skipComments: true }],
      'no-shadow': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['ck_pro/local_page/static/**/*.js', 'ck_pro/model/seat/page/**/*.js', 'ck_main/viewer/page/**/*.js'],
    languageOptions: { sourceType: 'module' },
    // a line break in the text of an html template is a space on the page
    rules: { 'max-len': ['error', { code: 120, ignoreTemplateLiterals: true }] },
  },
];
