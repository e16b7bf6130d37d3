// Package commands decides commands and appends the resulting events. Events have three
// kinds of source: clients (through api), the chain (through commands/delivery/watcher), and other
// events (through the process managers in the folders below). All three append through
// package eventlog/handler and nothing else.
package commands
