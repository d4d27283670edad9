package proxy

import (
	"slices"
	"sync"

	"github.com/united-workforce/uwf/util/hostlist"
)

const maxRefused = 50 // hosts that are kept by name: a record of a step has them all

// Refusal is a host that clients could not reach, in its canonical form. An empty Host stands for
// all others, once 50 are known.
type Refusal struct {
	Host  string `json:"host,omitempty"`
	Port  int    `json:"port,omitempty"`
	Count int    `json:"count"`
}

type refusals struct {
	mu    sync.Mutex
	known []Refusal
}

func (r *refusals) add(h hostlist.Host, port uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := Refusal{Host: h.String(), Port: int(port)}
	same := func(k Refusal) bool { return k.Host == one.Host && k.Port == one.Port }
	at := slices.IndexFunc(r.known, same)
	if at < 0 && len(r.known) >= maxRefused {
		one = Refusal{}
		at = slices.IndexFunc(r.known, same)
	}
	if at < 0 {
		r.known, at = append(r.known, one), len(r.known)
	}
	r.known[at].Count++
}

func (r *refusals) list() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.known)
}
