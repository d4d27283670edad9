package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// startRows say what it costs that a program starts at all.
func (b *bench) startRows() ([]row, error) {
	programs, err := b.programs()
	if err != nil {
		return nil, err
	}
	rows := []row{b.starts("uwf", 7, "--help"), b.starts("uwf", 7, "__complete", "thread", "")}
	for _, name := range programs {
		rows = append(rows, b.starts(name, startPromise(name), "--version"))
	}
	return rows, nil
}

// programs are our commands among the programs.
func (b *bench) programs() ([]string, error) {
	entries, err := os.ReadDir(b.bin)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".exe")
		if name == "uwf" || name == "ocas" || strings.HasPrefix(name, "uwf-") {
			names = append(names, name)
		}
	}
	return names, nil
}

// startPromise is how many times as long as an empty program one may take to
// start. Adapters to other people's agents have little to do; for our own agents
// nothing is promised.
func startPromise(name string) float64 {
	switch {
	case name == "uwf":
		return 7
	case slices.Contains(protocol.Adapters(), name):
		return 3
	}
	return 0
}

// starts is a row about a program that has next to nothing to do.
func (b *bench) starts(name string, promise float64, args ...string) row {
	run := func(ctx context.Context) error {
		return silent(b.command(ctx, b.path("nobody"), b.program(name), args...))
	}
	return versus(strings.TrimSpace(fmt.Sprint(name, " ", strings.Join(args, " "))), timed(run), promise, "1 empty program", timed(b.empty))
}
