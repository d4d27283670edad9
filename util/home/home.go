// Package home finds the directories that all programs share, by one rule:
//
//	home:  --home, UWF_HOME, UWF_STORAGE_ROOT, UNCAGED_WORKFLOW_STORAGE_ROOT, WORKFLOW_STORAGE_ROOT, ~/.uwf
//	store: --ocas-home, OCAS_HOME, <home>/cas
//
// An empty value counts as unset.
package home

import "github.com/united-workforce/uwf/util/env"

// Dirs are the shared places. None of them need exist.
type Dirs struct {
	Home  string // absolute
	Store string // absolute
}

// Find applies the rule. homeFlag and storeFlag are the flags' values, "" when not given.
func Find(e env.Env, homeFlag, storeFlag string) (Dirs, error) { panic("unwritten") }

func (d Dirs) Config() string           { panic("unwritten") } // <home>/config.yaml
func (d Dirs) DotEnv() string           { panic("unwritten") } // <home>/.env
func (d Dirs) Locks() string            { panic("unwritten") } // <home>/locks
func (d Dirs) Run(thread string) string { panic("unwritten") } // <home>/runs/<thread>
func (d Dirs) Sessions() string         { panic("unwritten") } // <home>/sessions
func (d Dirs) Logs() string             { panic("unwritten") } // <home>/logs
