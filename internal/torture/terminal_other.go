//go:build !linux

package main

import "context"

const onTerminals = false

// onTerminal runs a command without a terminal: there is none to be had here.
func (w *world) onTerminal(ctx context.Context, args ...string) (string, error) {
	_, err := w.uwf(ctx, args...)
	return "", err
}
