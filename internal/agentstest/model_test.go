//go:build agents

package agentstest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// reply is what the model answers to one request.
type reply struct {
	text   string
	run    string // a command that it calls the program's shell tool with
	status int    // of an error instead
	hold   bool   // no answer until the test ends
}

// model plays a script, one reply for each request that offers tools: programs
// make side requests too, for titles and the like, which are answered with a word.
// Past its end it fails every request.
type model struct {
	mu       sync.Mutex
	script   []reply
	bodies   []string // of the requests that were part of the script
	billed   int      // requests that were answered; each costs the same, in every dialect
	side     int      // and those beside the script
	released chan struct{}
}

// dialect makes an HTTP handler of a model.
type dialect func(m *model) http.Handler

// newModel starts an endpoint and returns its address.
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

// next is the reply to a request.
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
		m.script = m.script[1:] // an error stays: programs ask again by themselves
	}
	return r
}

// What an answer costs, in tokens.
const (
	inputOfOne  = 1150 // 1000 of them from the cache
	outputOfOne = 25
)

// bill is how many requests were answered so far, and how many more beside the script.
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
