// Package plan defines the plan that uwf passes to uwf-box: the program to run, and the parts of the machine
// it can access.
package plan

import (
	"encoding/json"
	"strconv"

	"github.com/united-workforce/uwf/util/codec"
)

// Version is the version of the plan. uwf and uwf-box must have the same version.
const Version = "3"

// SocketFD is uwf-box's end of a socket. It receives the encoded plan to its end, and with the first bytes the program's
// streams, a file for the report of the exit, and files that stay open while uwf-box runs. It sends a [Report] when the
// program has started or failed to start, and one when it has exited. Without a plan, it exits.
const SocketFD = 3

// Create is the argument with which uwf-box creates its namespaces itself, followed by whether it needs a network. AppArmor
// allows that only to programs with a profile.
const Create = "create-namespaces"

// MaxFiles is the maximum number of files that come with a plan.
const MaxFiles = 64

// ListenPort is the port of the loopback address on which a program finds a proxy.
const ListenPort = 3128

// Failed is the exit status of uwf-box if it could not start the program.
const Failed = 125

// Plan describes one run. Paths are absolute and without symbolic links.
type Plan struct {
	Version string
	Path    string   // of the program; not searched in PATH; "" runs nothing
	Args    []string // including its name
	Env     []string
	Dir     string

	// Temporary replaces /tmp and /var/tmp.
	Temporary string
	// Mounts are listed in the order in which they are made, outer ones before inner ones. Everything else is
	// read-only; /dev, /run and /proc belong to the program.
	Mounts []Mount

	Network bool   // an empty network of its own
	Listen  bool   // with a listener at [ListenPort], which is sent with the first report
	Nest    bool   // allow namespaces, and mounts in them
	Keep    uint64 // capabilities within the namespace, as bits
	// NoUnixSockets prevents creating Unix sockets.
	NoUnixSockets bool
}

// Mount is a mount at a path.
type Mount struct {
	Path string
	Kind Kind
	// From is the path to mount; "" means Path. For a [Link] it is the target of the link.
	From string
	// Inode is the expected [Identity] of From; "" means any. If it differs, From was replaced after it was
	// checked, and nothing is run.
	Inode string
	// Upper is the directory for changes made in an [Overlay], and Work an empty directory next to it.
	Upper string
	Work  string
	// Missing means that it might have disappeared since it was checked.
	Missing bool
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

// Line encodes a report as a line.
func (r Report) Line() []byte {
	switch { // those of each run, without reflection
	case r == Report{Started: Version}:
		return []byte(`{"started":"` + Version + "\"}\n")
	case r.Ended != nil:
		return append(strconv.AppendUint([]byte(`{"ended":`), uint64(*r.Ended), 10), "}\n"...)
	}
	text, err := json.Marshal(r)
	if err != nil { // its fields are texts and numbers
		return nil
	}
	return append(text, '\n')
}

// StageStart is the stage in which only the program is at fault, because the setup has succeeded.
const StageStart = "start"

// Encode encodes a plan.
func Encode(p Plan) []byte { return codec.Encode(p.code) }

// Decode decodes a plan. If the plan's version is another one, only that is decoded.
func Decode(data []byte) (p Plan, err error) {
	err = codec.Decode(data, p.code)
	return p, err
}

func (p *Plan) code(c *codec.Coder) {
	if c.Text(&p.Version); p.Version != Version && c.Decodes() {
		return
	}
	c.Text(&p.Path)
	codec.List(c, &p.Args, c.Text)
	codec.List(c, &p.Env, c.Text)
	c.Text(&p.Dir)
	c.Text(&p.Temporary)
	codec.List(c, &p.Mounts, func(m *Mount) {
		for _, s := range []*string{&m.Path, (*string)(&m.Kind), &m.From, &m.Inode, &m.Upper, &m.Work} {
			c.Text(s)
		}
		c.Bool(&m.Missing)
	})
	for _, b := range []*bool{&p.Network, &p.Listen, &p.Nest, &p.NoUnixSockets} {
		c.Bool(b)
	}
	c.Uint(&p.Keep)
}
