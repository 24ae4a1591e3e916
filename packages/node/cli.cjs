#!/usr/bin/env node
'use strict';

// The command muster, which is the program in the package for this platform.

const { spawn } = require('node:child_process');
const { binary } = require('./index.cjs');

const child = spawn(binary(), process.argv.slice(2), { stdio: 'inherit' });
// Ctrl-C reaches both; the program decides when it ends.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('error', (error) => {
  console.error(String(error));
  process.exitCode = 1;
});
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
