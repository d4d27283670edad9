// Package agentkit is what an agent's main calls. It does everything but the
// work: arguments, the request, the prompt, extraction with corrections, the
// nodes and the result line.
package agentkit

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/prompt"
)

// Options describe an agent. Name and Run are required.
type Options struct {
	Name    string // without or with "uwf-"
	Version string // "": from the build info
	// Run does the role's work.
	Run func(ctx context.Context, req *Request) (Result, error)
	// Continue sends a message into the session of an earlier Run or Continue,
	// to correct an answer. Nil: the agent cannot continue, and an answer that
	// is not valid fails the step.
	Continue func(ctx context.Context, sessionID, message string, req *Request) (Result, error)
	// Structured: the agent returns Value; the prompt leaves the format out.
	Structured bool
	// Resumes: Run continues req.SessionID when it is set. ForksSessions: it may do so on a fork as well.
	Resumes       bool
	ForksSessions bool
	// Extractor answers a prompt with JSON text when frontmatter failed and the
	// config has a model for it. Nil: no LLM extraction. (Here because agentkit
	// links no HTTP client: llm.Extractor fits.)
	Extractor func(ctx context.Context, m config.Endpoint, system, user string, schema any) (string, protocol.Usage, error)
	// ParseArgs takes the agent's own arguments out of args and returns the rest.
	ParseArgs func(args []string) (rest []string, err error)
	// Usage is shown by --help, after the kit's own.
	Usage string
}

// Request is one turn of a role.
type Request struct {
	Thread   string
	Role     string
	Workflow protocol.Workflow
	RoleDef  protocol.Role
	Schema   any // JSON Schema of the output, as a JSON value
	Head     protocol.Hash
	Start    protocol.Start

	EdgePrompt string
	Prompt     string       // everything, as one message
	System     string       // the part that stays the same over the role's turns
	User       string       // the rest
	Parts      prompt.Parts // what both were made of

	SessionID string // of the role's last turn with this agent, "" if there is none to continue
	Visit     int    // how often the role has had its turn before

	// Fork: SessionID belongs to the thread that this one was forked from. The
	// agent must go on in a copy of that session, never in the session itself.
	Fork   bool
	Number int // of the step to make, from 1

	Cwd    string
	Dirs   home.Dirs
	RunDir string  // "" outside the engine
	Alias  string  // of this agent in the config; its bare name outside the engine
	Env    env.Env // with .env
	Store  cas.Store

	// unexported: history, turn recorder
	kit *run
}

type run struct{}

// Steps yields the thread's steps, newest first, outputs expanded.
func (r *Request) Steps(ctx context.Context) func(yield func(Step, error) bool) { panic("unwritten") }

// Step is an earlier step.
type Step struct {
	Hash   protocol.Hash
	Number int // from 1
	protocol.Step
	Output any
}

// Content is the answer that the agent gave in a step.
func (r *Request) Content(ctx context.Context, s Step) (string, error) { panic("unwritten") }

// Config reads config.yaml when it is first asked for, so that an agent that
// needs none neither pays for it nor fails on a broken one.
func (r *Request) Config(ctx context.Context) (protocol.Config, error) { panic("unwritten") }

// StartOver is for an agent whose session could not be continued: it clears
// SessionID and Fork, and makes the prompt a full one with the whole history.
func (r *Request) StartOver(ctx context.Context) error { panic("unwritten") }

// Text adds a text to the step's nodes, for Detail.Requests, and returns its hash.
func (r *Request) Text(ctx context.Context, s string) (protocol.Hash, error) { panic("unwritten") }

// Turn stores a turn as it happens, announces it, and keeps it for the detail.
// Index and AtMs are filled in.
func (r *Request) Turn(ctx context.Context, t protocol.Turn) error { panic("unwritten") }

// Result is what a run leads to: Output, Value or Suspend.
type Result struct {
	Output    string           // text that begins with a frontmatter block
	Value     any              // structured data instead
	Suspend   string           // a reason to wait for a person instead
	SessionID string           // required
	Turns     []protocol.Turn  // if they were not recorded with Request.Turn
	Detail    *protocol.Detail // Model, AgentVersion, Outcome; Turns are added
	Usage     *protocol.Usage  // of this run alone
}

// RefuseEngine returns an error if a shell command line would run a step of a
// thread ("uwf run", "uwf thread step" and the like). Tools must not: the engine
// waits for the agent, so the agent must not wait for the engine.
func RefuseEngine(commandLine string) error { panic("unwritten") }

// Run plays the agent in this process and exits: it is the whole of main.
func Run(o Options) { panic("unwritten") }

// Main is Run for tests: it returns the exit status.
func Main(ctx context.Context, e env.Env, o Options) int { panic("unwritten") }
