//go:build unix

package acp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/util/prosetest"
)

// The test binary acts as the agents: it is started again with this variable, which contains the agent's
// session directory, and the name of a behavior.
const fakeVariable = "UWF_TEST_ACP_STATE"

func TestMain(m *testing.M) {
	if state := os.Getenv(fakeVariable); state != "" {
		os.Unsetenv(fakeVariable)
		f := &fake{in: bufio.NewReader(os.Stdin), out: bufio.NewWriter(os.Stdout), state: state, args: os.Args[1:]}
		f.run()
		return
	}
	os.Exit(prosetest.Run(m))
}

// fake is an agent that speaks the protocol.
type fake struct {
	in    *bufio.Reader
	out   *bufio.Writer
	state string
	args  []string
	last  int
	id    string // session ID
	how   string // how it was opened
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Prompt    []struct {
			Text string `json:"text"`
		} `json:"prompt"`
		ModeID   string `json:"modeId"`
		ConfigID string `json:"configId"`
		Value    string `json:"value"`
		Method   string `json:"methodId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	line   string
}

// run performs the behavior in the first argument.
func (f *fake) run() {
	switch behaviour := f.args[0]; behaviour {
	case "silent":
		f.ignoreSignals()
		f.drain()
	case "usage":
		fmt.Fprintln(os.Stderr, "unknown option: acp\nusage: agent [file]")
		os.Exit(2)
	case "closed-input":
		os.Stdin.Close()
		time.Sleep(time.Hour)
	default:
		f.serve(behaviour)
	}
}

func (f *fake) ignoreSignals() { signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) }

// drain reads stdin to the end and keeps running.
func (f *fake) drain() {
	_, _ = io.Copy(io.Discard, f.in)
	time.Sleep(time.Hour)
}

// read returns the next message; it ends the agent when there is none.
func (f *fake) read() fakeMessage {
	line, err := f.in.ReadString('\n')
	if err != nil {
		f.note("end of input")
		os.Exit(0)
	}
	m := fakeMessage{line: strings.TrimSpace(line)}
	if json.Unmarshal([]byte(line), &m) != nil {
		f.note("not JSON: " + line)
	}
	return m
}

// note appends to the agent's journal, which the tests read.
func (f *fake) note(format string, a ...any) {
	j, err := os.OpenFile(filepath.Join(f.state, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintf(j, format+"\n", a...)
		j.Close()
	}
}

func (f *fake) print(format string, a ...any) {
	fmt.Fprintf(f.out, format+"\n", a...)
	f.out.Flush()
}

func (f *fake) answer(m fakeMessage, result string) {
	f.print(`{"result":%s,"id":%s,"jsonrpc":"2.0"}`, strings.ReplaceAll(result, "\n", ""), m.ID)
}

func (f *fake) fail(m fakeMessage, code int, message string) {
	f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, message)
}

// tell sends an update of the session.
func (f *fake) tell(update string) {
	f.print(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, f.id, update)
}

func (f *fake) say(text string) {
	f.tell(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}`, quoted(text)))
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string
	return string(b)
}

// ask sends a request and returns the answer. It keeps a cancel that arrives first.
func (f *fake) ask(method, params string) fakeMessage {
	f.last++
	id := fmt.Sprintf(`"r-%d"`, f.last)
	f.print(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	for {
		m := f.read()
		if string(m.ID) == id && m.Method == "" {
			f.note("%s -> %s%s", method, m.Result, m.Error)
			return m
		}
		f.note("got %s", m.Method)
	}
}

// serve answers calls according to the behavior.
func (f *fake) serve(behaviour string) {
	for {
		m := f.read()
		switch m.Method {
		case "initialize":
			f.note("started %s", strings.Join(f.args, " "))
			f.initialize(m, behaviour)
		case "session/new":
			f.open(m, behaviour, "new")
		case "session/resume", "session/load", "session/fork":
			f.note("%s %s", m.Method, m.Params.SessionID)
			if behaviour == "no-resume" && m.Method == "session/resume" {
				f.fail(m, -32601, "Method not found")
				continue
			}
			f.open(m, behaviour, strings.TrimPrefix(m.Method, "session/"))
		case "session/prompt":
			f.note("prompt in %s: %d bytes", m.Params.SessionID, len(m.Params.Prompt[0].Text))
			f.keep("prompt", m.Params.Prompt[0].Text)
			f.prompt(m, behaviour)
		case "session/set_mode":
			f.note("mode %s", m.Params.ModeID)
			f.answer(m, `{}`)
		case "session/set_config_option":
			f.note("%s %s", m.Params.ConfigID, m.Params.Value)
			f.answer(m, `{}`)
		case "authenticate":
			f.note("authenticate %s", m.Params.Method)
			f.answer(m, `null`)
		case "session/close":
			f.answer(m, `{}`)
		default:
			f.note("got %s", m.Method)
		}
	}
}

func (f *fake) initialize(m fakeMessage, behaviour string) {
	load, session, version, name := "true", `"resume":{},"close":{}`, 1, "fake"
	switch behaviour {
	case "load-only", "late-replay":
		session = ""
	case "gemini":
		session, name = "", "gemini-cli"
	case "forgetful":
		load, session = "false", ""
	case "forks":
		session = `"resume":{},"fork":{}`
	case "version-2":
		version = 2
	}
	f.answer(m, fmt.Sprintf(`{"protocolVersion":%d,"agentInfo":{"name":%q,"version":"1.2.3"},
		"authMethods":[{"id":"key","name":"API key"},{"id":"web","name":"Web","description":"Log in with a browser"}],
		"agentCapabilities":{"loadSession":%s,"sessionCapabilities":{%s}}}`, version, name, load, session))
	f.out.Flush()
}

const fakeSetup = `"modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"yolo"},{"id":"acceptEdits"},{"id":"plan"}]},
	"configOptions":[{"id":"model","category":"model","type":"select","currentValue":"small","options":[{"value":"small"},{"name":"g","options":[{"value":"large"}]}]}]`

// open opens a session: a new one, or one from the state directory.
func (f *fake) open(m fakeMessage, behaviour, how string) {
	f.how = how
	switch {
	case behaviour == "hang-open":
		f.ignoreSignals()
		f.drain()
	case behaviour == "auth" && how == "new":
		f.fail(m, -32000, "Authentication required")
		return
	case how == "new", how == "fork", behaviour == "renames":
		f.last++
		f.id = fmt.Sprintf("s-%d-%d", os.Getpid(), f.last)
		f.keep("session-"+f.id, "")
	default:
		if _, err := os.Stat(filepath.Join(f.state, "session-"+m.Params.SessionID)); err != nil {
			f.fail(m, -32002, "Resource not found")
			return
		}
		f.id = m.Params.SessionID
	}
	if how == "load" {
		f.replay()
	}
	id := ""
	if how == "new" || how == "fork" || behaviour == "renames" {
		id = fmt.Sprintf(`"sessionId":%q,`, f.id)
	}
	f.answer(m, fmt.Sprintf(`{%s%s}`, id, fakeSetup))
	if behaviour == "late-replay" && how == "load" {
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			f.replay()
		}
	}
}

// replay sends the earlier conversation.
func (f *fake) replay() {
	f.tell(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"the old prompt"}}`)
	f.say("---\n$status: failed\nsummary: replayed\n---\n")
	f.tell(`{"sessionUpdate":"tool_call","toolCallId":"old","title":"old","status":"completed"}`)
	f.say("---\n$status: failed\nsummary: replayed too\n---\n")
}

func (f *fake) keep(name, text string) {
	_ = os.WriteFile(filepath.Join(f.state, name), []byte(text), 0o600) // if it fails, the test fails as well
}

// count returns how many times it was called with a name, in all processes.
func (f *fake) count(name string) int {
	path := filepath.Join(f.state, "count-"+name)
	b, _ := os.ReadFile(path) // none yet
	_ = os.WriteFile(path, append(b, '.'), 0o600)
	return len(b) + 1
}

const good = "---\n$status: done\nsummary: all good\n---\n\nIt is done."

// done answers the prompt successfully.
func (f *fake) done(m fakeMessage) {
	f.say(good)
	f.answer(m, `{"stopReason":"end_turn"}`)
}

// child leaves a process behind that keeps our streams open.
func (f *fake) child() {
	cmd := exec.Command("sleep", "3600")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Start() == nil {
		f.keep("child", fmt.Sprint(cmd.Process.Pid))
	}
}
