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
	// foolPart is our own command, acting as an agent that was manipulated: its role maker answers with the
	// content of a file.
	foolPart = "fool"
	// foolVariable is the directory of that file, said, and of the recorded prompts.
	foolVariable = "TORTURE_FOOL"
	// wasHere is a file that it leaves wherever it works.
	wasHere = "was-here"
	// harmless is its answer if there is no file.
	harmless = "---\n$status: done\nnote: fine\n---\nAll well.\n"
)

// fool records its prompt under each role's name and exits.
func fool(e env.Env) {
	part := func(args []string) ([]string, error) { return args[1:], nil } // strips our own command
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
