//go:build race

package simulation

// raced says that the race detector is on. With it the runtime shuffles goroutines on
// purpose (randomizeScheduler in runtime/proc.go), and no world can be seen again.
const raced = true
