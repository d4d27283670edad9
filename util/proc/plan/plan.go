// Package plan defines the plan that uwf passes to uwf-box: the program to run, and the parts of the machine
// it can access.
package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Version is the version of the plan. uwf and uwf-box must have the same version.
const Version = "1"

// The descriptors of uwf-box. Any further ones stay open while it runs; its program inherits none of them.
const (
	PlanFD   = 3 // the plan as JSON
	ReportFD = 4 // for a Report when the program has started or failed to start, and one when it has exited
	StatusFD = 5 // with Plan.Status: for the report of the exit as well
)

// ListenPort is the port of the loopback address on which a program finds a proxy.
const ListenPort = 3128

// ListenFD returns the descriptor of a Unix socket for sending the listener.
func (p Plan) ListenFD() int {
	if p.Status {
		return StatusFD + 1
	}
	return StatusFD
}

// Failed is the exit status of uwf-box if it could not start the program.
const Failed = 125

// Plan describes one run. Paths are absolute and without symbolic links.
type Plan struct {
	Version string   `json:"version"`
	Path    string   `json:"path"` // of the program; not searched in PATH; "" runs nothing
	Args    []string `json:"args"` // including its name
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Status  bool     `json:"status,omitempty"`

	// Temporary replaces /tmp and /var/tmp.
	Temporary string `json:"temporary"`
	// Mounts are listed in the order in which they are made, outer ones before inner ones. Everything else is
	// read-only; /dev, /run and /proc belong to the program.
	Mounts []Mount `json:"mounts"`

	Network bool   `json:"network,omitempty"` // an empty network of its own
	Listen  bool   `json:"listen,omitempty"`  // with a listener at [ListenPort], which is sent over ListenFD
	Nest    bool   `json:"nest,omitempty"`    // allow namespaces, and mounts in them
	Keep    uint64 `json:"keep,omitempty"`    // capabilities within the namespace, as bits
	// NoUnixSockets prevents creating Unix sockets.
	NoUnixSockets bool `json:"noUnixSockets,omitempty"`
}

// Mount is a mount at a path.
type Mount struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// From is the path to mount; "" means Path. For a [Link] it is the target of the link.
	From string `json:"from,omitempty"`
	// Inode is the expected [Identity] of From; "" means any. If it differs, From was replaced after it was
	// checked, and nothing is run.
	Inode string `json:"inode,omitempty"`
	// Upper is the directory for changes made in an [Overlay], and Work an empty directory next to it.
	Upper string `json:"upper,omitempty"`
	Work  string `json:"work,omitempty"`
	// Missing means that it might have disappeared since it was checked.
	Missing bool `json:"missing,omitempty"`
}

// Kind is the kind of access to a mount.
type Kind string

// The kinds of access.
const (
	Show  Kind = "show"  // read-only
	Write Kind = "write" // read and write
	Hide  Kind = "hide"  // no access: an empty directory, or a file that can't be opened
	Own   Kind = "own"   // read and write an initially empty directory that is deleted with the program
	// Overlay allows reading and writing, but stores changes of the directory elsewhere.
	Overlay Kind = "overlay"
	Link    Kind = "link" // a symbolic link, mounted over a file or created where nothing exists
)

// Report is a status message of uwf-box, one JSON object per line.
type Report struct {
	Started string `json:"started,omitempty"` // version of uwf-box
	// Stage is the operation that failed before the program was started.
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
	// Ended is the program's wait status.
	Ended *uint32 `json:"ended,omitempty"`
}

// StageStart is the stage in which only the program is at fault, because the setup has succeeded.
const StageStart = "start"

// Encode encodes a plan. Words and paths, unlike JSON strings, needn't be valid UTF-8; invalid ones are
// marked with a byte that can't occur in them.
func Encode(p Plan) ([]byte, error) {
	p.Args, p.Env, p.Mounts = slices.Clone(p.Args), slices.Clone(p.Env), slices.Clone(p.Mounts)
	for _, text := range p.texts() {
		if !utf8.ValidString(*text) {
			*text = marker + base64.StdEncoding.EncodeToString([]byte(*text))
		}
	}
	return json.Marshal(p)
}

// Decode decodes a plan.
func Decode(data []byte) (p Plan, err error) {
	if err := json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	for _, text := range p.texts() {
		coded, marked := strings.CutPrefix(*text, marker)
		if !marked {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return p, fmt.Errorf("a word of the plan: %w", err)
		}
		*text = string(raw)
	}
	return p, nil
}

const marker = "\x00"

// texts returns all words and paths of a plan.
func (p *Plan) texts() []*string {
	all := []*string{&p.Path, &p.Dir, &p.Temporary}
	for i := range p.Args {
		all = append(all, &p.Args[i])
	}
	for i := range p.Env {
		all = append(all, &p.Env[i])
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		all = append(all, &m.Path, &m.From, &m.Upper, &m.Work)
	}
	return all
}
