// Package plan defines the plan that uwf passes to uwf-box: the program to run, and the parts of the machine
// it can access.
package plan

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
)

// Version is the version of the plan. uwf and uwf-box must have the same version.
const Version = "2"

// The descriptors of uwf-box. Any further ones stay open while it runs; its program inherits none of them.
const (
	PlanFD   = 3 // the encoded plan
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
	Version string
	Path    string   // of the program; not searched in PATH; "" runs nothing
	Args    []string // including its name
	Env     []string
	Dir     string
	Status  bool

	// Temporary replaces /tmp and /var/tmp.
	Temporary string
	// Mounts are listed in the order in which they are made, outer ones before inner ones. Everything else is
	// read-only; /dev, /run and /proc belong to the program.
	Mounts []Mount

	Network bool   // an empty network of its own
	Listen  bool   // with a listener at [ListenPort], which is sent over ListenFD
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

// Encode encodes a plan, without reflection since it is decoded before each command: fields in order, texts with
// their length, so that they needn't be valid UTF-8.
func Encode(p Plan) []byte {
	c := &coder{}
	p.code(c)
	return c.data
}

// Decode decodes a plan. If the plan's version is another one, only that is decoded.
func Decode(data []byte) (p Plan, err error) {
	c := &coder{data: data, decodes: true}
	p.code(c)
	if c.bad {
		return p, errors.New("the plan is damaged")
	}
	return p, nil
}

func (p *Plan) code(c *coder) {
	if c.text(&p.Version); p.Version != Version && c.decodes {
		return
	}
	c.text(&p.Path)
	list(c, &p.Args, c.text)
	list(c, &p.Env, c.text)
	c.text(&p.Dir)
	c.text(&p.Temporary)
	list(c, &p.Mounts, c.mount)
	for _, b := range []*bool{&p.Status, &p.Network, &p.Listen, &p.Nest, &p.NoUnixSockets} {
		c.bool(b)
	}
	c.number(&p.Keep)
}

// coder encodes values, or decodes them in the same order.
type coder struct {
	data    []byte
	decodes bool
	bad     bool
}

func (c *coder) number(n *uint64) {
	if !c.decodes {
		c.data = binary.AppendUvarint(c.data, *n)
		return
	}
	size := 0
	if *n, size = binary.Uvarint(c.data); size <= 0 {
		*n, c.bad, c.data = 0, true, nil
		return
	}
	c.data = c.data[size:]
}

// length codes a number of items, each of which has at least one byte.
func (c *coder) length(n int) int {
	number := uint64(n)
	if c.number(&number); c.decodes && number > uint64(len(c.data)) {
		c.bad = true
		return 0
	}
	return int(number)
}

func (c *coder) text(s *string) {
	n := c.length(len(*s))
	if !c.decodes {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = string(c.data[:n]), c.data[n:]
}

func (c *coder) bool(b *bool) {
	n := uint64(0)
	if *b {
		n = 1
	}
	c.number(&n)
	*b = n == 1
}

func (c *coder) mount(m *Mount) {
	c.text(&m.Path)
	kind := string(m.Kind)
	c.text(&kind)
	m.Kind = Kind(kind)
	for _, s := range []*string{&m.From, &m.Inode, &m.Upper, &m.Work} {
		c.text(s)
	}
	c.bool(&m.Missing)
}

func list[T any](c *coder, all *[]T, item func(*T)) {
	n := c.length(len(*all))
	if c.decodes && n > 0 {
		*all = make([]T, n)
	}
	for i := range n {
		item(&(*all)[i])
	}
}
