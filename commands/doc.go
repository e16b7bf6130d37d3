// Package commands turns wishes into recorded facts. Three kinds of author cause
// events: people (through api), the chain (through commands/watcher), and other
// facts (the process managers in the folders below). All of them go through one
// [Handler], the only code that appends.
package commands
