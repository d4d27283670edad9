//go:build agents

package agentstest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// reply is the model's answer to one request.
type reply struct {
	text   string
	run    string // a command for the program's shell tool
	status int    // HTTP status of an error
	hold   bool   // no answer until the test ends
}

// model plays a script, with one reply for each request that offers tools. Programs also make side requests,
// for titles etc., which get a one-word answer. After the end of the script, every request fails.
type model struct {
	mu       sync.Mutex
	script   []reply
	bodies   []string // of requests that were part of the script
	billed   int      // number of answered requests; each costs the same, in every dialect
	side     int      // number of side requests
	released chan struct{}
}

// dialect returns an HTTP handler for a model.
type dialect func(m *model) http.Handler

// newModel starts an endpoint and returns its URL.
func newModel(t *testing.T, speak dialect) (*model, string) {
	t.Helper()
	m := &model{released: make(chan struct{})}
	server := httptest.NewServer(speak(m))
	t.Cleanup(func() {
		close(m.released)
		server.CloseClientConnections()
		server.Close()
	})
	return m, server.URL
}

// play sets the script.
func (m *model) play(script ...reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script, m.bodies = script, nil
}

// next returns the reply to a request.
func (m *model) next(body string, tools bool) reply {
	if !tools {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.side++
		return reply{text: "ok"}
	}
	r := m.take(body)
	if r.hold {
		<-m.released
	}
	return r
}

func (m *model) take(body string) reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, body)
	if len(m.script) == 0 {
		return reply{status: http.StatusBadRequest, text: "the script is over"}
	}
	r := m.script[0]
	if r.status == 0 {
		m.billed++
		m.script = m.script[1:] // an error stays, because programs retry
	}
	return r
}

// The cost of an answer, in tokens.
const (
	inputOfOne  = 1150 // including 1000 from the cache
	outputOfOne = 25
)

// bill returns the numbers of answered requests in the script and beside it.
func (m *model) bill() (script, side int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.billed, m.side
}

// asked returns the requests so far.
func (m *model) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.bodies...)
}
