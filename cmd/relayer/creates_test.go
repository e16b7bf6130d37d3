//go:build !chaos

package main_test

// creates is how many intents one signer gets at once.
const creates = 300
