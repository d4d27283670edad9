package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

const (
	// foolPart is our own command that plays an agent which a stranger has talked
	// into something: its role maker answers what stands in a file.
	foolPart = "fool"
	// foolVariable is the directory of that file, said, and of what it was told.
	foolVariable = "TORTURE_FOOL"
	// wasHere is a file that it leaves wherever it works.
	wasHere = "was-here"
	// harmless is what it answers when nobody has said anything.
	harmless = "---\n$status: done\nnote: fine\n---\nAll well.\n"
)

// fool keeps what it was told by each role's name, and exits.
func fool(e env.Env) {
	part := func(args []string) ([]string, error) { return args[1:], nil } // without our own command
	agentkit.Run(agentkit.Options{Name: "fool", ParseArgs: part, Run: func(_ context.Context, r *agentkit.Request) (agentkit.Result, error) {
		dir := e.Get(foolVariable)
		said, err := os.ReadFile(filepath.Join(dir, "said"))
		if r.Role != "maker" || errors.Is(err, fs.ErrNotExist) {
			said, err = []byte(harmless), nil
		}
		err = errors.Join(err,
			os.WriteFile(filepath.Join(dir, r.Role), []byte(r.Prompt), 0o600),
			os.WriteFile(filepath.Join(r.Cwd, wasHere), nil, 0o600))
		return agentkit.Result{Output: string(said), SessionID: "fool"}, err
	}})
}
