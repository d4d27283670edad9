// Package plan is what uwf tells uwf-box: which program to run, and what it sees of the machine.
package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Version is that of the plan. uwf and uwf-box must have the same.
const Version = "1"

// The descriptors of uwf-box. What comes after them stays open as long as it runs; its program
// gets none of them.
const (
	PlanFD   = 3 // the plan is read from here, as JSON
	ReportFD = 4 // a Report is written when the program has started or cannot be, and one when it has ended
	StatusFD = 5 // if Plan.Status: the report of the end is written here, too
)

// ListenPort is that of the loopback address at which a program finds a proxy.
const ListenPort = 3128

// ListenFD is the descriptor of a unix socket over which the listener is sent.
func (p Plan) ListenFD() int {
	if p.Status {
		return StatusFD + 1
	}
	return StatusFD
}

// Failed is the exit status of uwf-box when it could not start the program.
const Failed = 125

// Plan is one run. Paths are absolute and without symbolic links.
type Plan struct {
	Version string   `json:"version"`
	Path    string   `json:"path"` // of the program; PATH is not searched; "": nothing is run
	Args    []string `json:"args"` // with its name
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Status  bool     `json:"status,omitempty"`

	// Temporary takes the place of /tmp and /var/tmp.
	Temporary string `json:"temporary"`
	// Mounts are in the order in which they are made, outer ones before inner ones. Everything else
	// can be read as it is and not be written; /dev, /run and /proc are the program's own.
	Mounts []Mount `json:"mounts"`

	Network bool   `json:"network,omitempty"` // the program has a network of its own, with nothing in it
	Listen  bool   `json:"listen,omitempty"`  // but a listener at [ListenPort], which is sent over ListenFD
	Nest    bool   `json:"nest,omitempty"`    // it may make namespaces and mounts in them
	Keep    uint64 `json:"keep,omitempty"`    // capabilities within the namespace, as bits
	// NoUnixSockets refuses to make any.
	NoUnixSockets bool `json:"noUnixSockets,omitempty"`
}

// Mount is what a program finds at a path.
type Mount struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// From is what is mounted; "": what is at Path. Of a [Link] it is what the link says.
	From string `json:"from,omitempty"`
	// Inode is what must be at From, as [Identity] says it; "": anything. Else nothing is run: it was
	// exchanged since it was looked at.
	Inode string `json:"inode,omitempty"`
	// Upper is where what is changed in an [Overlay] is kept, and Work an empty directory beside it.
	Upper string `json:"upper,omitempty"`
	Work  string `json:"work,omitempty"`
	// Missing: it may have gone since it was looked at.
	Missing bool `json:"missing,omitempty"`
}

// Kind is what a program may do with a mount.
type Kind string

// The kinds.
const (
	Show  Kind = "show"  // read it
	Write Kind = "write" // read and write it
	Hide  Kind = "hide"  // neither: it is empty, or a file that cannot be opened
	Own   Kind = "own"   // read and write a directory that is empty at first, and goes with the program
	// Overlay: read and write it, but what it changes of the directory is kept elsewhere.
	Overlay Kind = "overlay"
	Link    Kind = "link" // follow it: a symbolic link is mounted over a file, or made where there is nothing
)

// Report is what uwf-box says of a run, one JSON object per line.
type Report struct {
	Started string `json:"started,omitempty"` // its Version
	// Stage is what has failed before the program was started.
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
	// Ended is the wait status with which the program ended.
	Ended *uint32 `json:"ended,omitempty"`
}

// StageStart is the stage in which only the program is at fault: everything else was done.
const StageStart = "start"

// Encode is the plan as it is sent. Words and paths need not be UTF-8, as JSON's texts are: those that
// are not are marked with a byte that none of them can have.
func Encode(p Plan) ([]byte, error) {
	p.Args, p.Env, p.Mounts = slices.Clone(p.Args), slices.Clone(p.Env), slices.Clone(p.Mounts)
	for _, text := range p.texts() {
		if !utf8.ValidString(*text) {
			*text = marker + base64.StdEncoding.EncodeToString([]byte(*text))
		}
	}
	return json.Marshal(p)
}

// Decode reads a plan.
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

// texts are all words and paths of a plan.
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
