//go:build !linux

package main

import (
	"context"
	"math/rand/v2"
	"os"
)

// Features that are only implemented on Linux; elsewhere the rows run without them.
const onTerminals = false

func (w *world) onTerminal(ctx context.Context, args ...string) (string, error) {
	_, err := w.uwf(ctx, args...)
	return "", err
}

func (w *world) endLeft() ([]int, error) { return nil, nil }

func odd(_ *rand.Rand, path string) (what string, err error) { return "nothing", os.Remove(path) }

func peak(*os.ProcessState) int64 { return 0 }
