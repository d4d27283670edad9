package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/remotes"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a commands) logCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "log", Usage: "show and clean the log of steps",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "list the log files, newest first",
			}, a.logList),
			a.Leaf(ucli.Command{
				Name: "show", Usage: "print log entries, oldest first",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: "thread", Usage: "`ID` only entries of one thread"},
					&ucli.StringFlag{Name: "process", Usage: "`PID` only entries of one process"},
					&ucli.StringFlag{Name: "date", Usage: "`DATE` only entries of one day (UTC), such as 2026-11-21"},
					term.Number(ucli.StringFlag{Name: "limit", Aliases: []string{"n"}, Usage: "`N` maximum number of entries; the newest are kept"}, 1, 20),
				},
			}, a.logShow),
			a.Leaf(ucli.Command{
				Name: "clean", Usage: "delete old log files",
				Flags: []ucli.Flag{&ucli.StringFlag{Name: "before", Required: true, Usage: "`DATE` first day to keep: a date, or an age such as 30d"}},
			}, a.logClean),
		},
	})
}

func (a commands) logList(context.Context, *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	files, err := eventlog.Files(dirs.Logs())
	if err != nil {
		return err
	}
	return a.Print(files, func(w *term.Page) {
		if len(files) == 0 {
			w.Printf("the log is empty\n")
			return
		}
		t := term.NewTable("DATE", "BYTES", "FILE")
		for _, f := range files {
			t.Row(f.Date, view.Thousands(f.Size), f.Name)
		}
		w.Table(t)
	})
}

func (a commands) logShow(ctx context.Context, c *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	f, unknown, err := a.logFilter(ctx, c)
	if err != nil {
		return err
	}
	entries, bad, err := eventlog.Read(dirs.Logs(), f)
	if err != nil {
		return err
	}
	if len(entries) == 0 && unknown != nil { // the log may still contain a deleted thread
		return unknown
	}
	if bad > 0 {
		a.Messagef("uwf: skipped %d damaged lines of the log", bad)
	}
	if limit := term.NumberOf(c, "limit"); limit > 0 {
		entries = entries[max(0, len(entries)-limit):]
	}
	return a.printLog(entries)
}

// logFilter parses the flags that select entries. unknown is the error for a thread that was not found; it
// applies only if the log does not contain the thread either.
func (a commands) logFilter(ctx context.Context, c *ucli.Context) (f eventlog.Filter, unknown, err error) {
	f = eventlog.Filter{Thread: c.String("thread"), Process: c.String("process"), Date: c.String("date")}
	if f.Thread != "" {
		var id string
		if id, unknown = a.Thread(ctx, f.Thread); unknown == nil {
			f.Thread = id
		}
	}
	if f.Process != "" && !isProcess(f.Process) {
		return f, unknown, cmdline.UsageError(fmt.Sprintf("invalid --process %q", f.Process),
			"to find one (\"pid\"): uwf log show --json")
	}
	if f.Date != "" {
		f.Date, err = day(f.Date, a.Env.Now())
	}
	return f, unknown, err
}

func (a commands) printLog(entries []eventlog.Entry) error {
	return a.Print(entries, func(w *term.Page) {
		t := term.NewTable("TIME", "THREAD", "EVENT", "AGENT", "TOOK")
		for _, e := range entries {
			took := ""
			if e.Ms > 0 {
				took = render.Duration(e.Ms)
			}
			t.Row(e.TS.In(a.Env.Now().Location()).Format(time.DateTime), e.Thread, e.Msg, e.Agent, took)
		}
		if len(entries) == 0 {
			w.Printf("no such entry\n")
			return
		}
		w.Table(t)
	})
}

// isProcess reports whether s has the form of Entry.Pid.
func isProcess(s string) bool {
	start, id, ok := strings.Cut(s, "-")
	_, errStart := strconv.ParseUint(start, 10, 64)
	_, errID := strconv.ParseUint(id, 10, 64)
	return ok && errStart == nil && errID == nil
}

func (a commands) logClean(_ context.Context, c *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	before, err := day(c.String("before"), a.Env.Now())
	if err != nil {
		return err
	}
	n, err := eventlog.Clean(durable.OS(), dirs.Logs(), before)
	if err != nil {
		return err
	}
	return a.Printf(map[string]int{"deleted": n}, "deleted %d\n", n)
}

// day converts a date, or a duration before now, to the log's form of a date.
func day(s string, now time.Time) (string, error) {
	t, err := term.ParseTime(s, now, time.UTC)
	if err != nil {
		return "", err
	}
	return t.UTC().Format(time.DateOnly), nil
}

func (a commands) statsCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "stats", Usage: "show totals of steps, time, tokens and cost",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "since", Usage: "`TIME` only steps finished since then: a date, or an age such as 7d or 24h"},
			term.Checked(ucli.StringFlag{
				Name: "by", Usage: "`LIST` comma-separated groups: " + strings.Join(view.StatsBy(), ", "), Value: "workflow",
			}, func(_, list string) error {
				_, err := statsBy(list)
				return err
			}),
			a.FormatFlag([]string{"text", "json", "yaml", "csv"}, "text on a terminal, else json"),
		},
	}, a.stats)
}

func (a commands) stats(ctx context.Context, c *ucli.Context, e *engine.Engine) (err error) {
	by, _ := statsBy(c.String("by")) // validated when the flag was parsed
	var after time.Time
	if now := a.Env.Now(); c.IsSet("since") {
		if after, err = term.ParseTime(c.String("since"), now, now.Location()); err != nil {
			return err
		}
	}
	known := view.SavedSummaries(e)
	s, err := view.Stats(ctx, e, known, after, by)
	if err != nil {
		return err
	}
	known.Save(e)
	for _, hole := range s.Unread {
		a.Messagef("uwf: %s", plaintext.Line(term.Joined(hole.Thread, hole.Error)))
		a.Status = protocol.CodeCorrupt
	}
	if a.OwnFormat(c) == "csv" {
		return view.StatsCSV(a.Env.Stdout, s)
	}
	return a.Print(s, func(w *term.Page) { statsText(w, s) })
}

// statsBy parses --by.
func statsBy(list string) ([]string, error) {
	var by []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		switch {
		case slices.Contains(by, word):
		case slices.Contains(view.StatsBy(), word):
			by = append(by, word)
		default:
			return nil, cmdline.UsageError(fmt.Sprintf("cannot group by %q", word), cmdline.Choices("--by ", word, view.StatsBy())...)
		}
	}
	return by, nil
}

func statsText(w *term.Page, s protocol.Stats) {
	var header []string
	for _, by := range s.By {
		header = append(header, strings.ToUpper(by))
	}
	t := term.NewTable(append(header, "STEPS", "TIME", "TOKENS", "COST")...)
	row := func(names []string, sum protocol.Totals) {
		t.Row(append(names, strconv.Itoa(sum.Steps), render.Duration(sum.DurationMs), cmp.Or(view.Tokens(sum), "-"), cmp.Or(view.Cost(sum), "-"))...)
	}
	for _, r := range s.Rows {
		var names []string
		for _, by := range s.By {
			names = append(names, cmp.Or(r.Of[by], "(unknown)"))
		}
		row(names, r.Totals)
	}
	total := make([]string, len(s.By))
	total[0] = "all"
	row(total, s.Totals)
	w.Table(t)
}

func (a commands) inboxCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "inbox", Usage: "list threads that need you, oldest first",
	}, func(ctx context.Context, _ *ucli.Context, e *engine.Engine) error {
		items := view.Inbox(ctx, e, func(err error) {
			a.Messagef("uwf: %v", err)
			a.Status = app.Classify(err).Code
		})
		return a.Print(items, func(w *term.Page) {
			facts, _ := e.Reader.Heads.AllFacts(ctx) // without facts, IDs are not shortened
			inboxText(w, items, facts, a.Env.Now())
		})
	})
}

// inboxText prints a paragraph per thread, because commands to type don't fit in a table.
func inboxText(w *term.Page, items []protocol.InboxItem, facts map[string]heads.Facts, now time.Time) {
	if len(items) == 0 {
		w.Printf("nothing is waiting for you\n")
		return
	}
	const most = 200 // characters of a question; thread show prints all of it
	for i, it := range items {
		asks := it.Reason
		if it.Question != nil {
			asks = it.Question.Role + " asks: " + it.Question.Text
		}
		if i > 0 {
			w.Printf("\n")
		}
		t := term.NewTable(names.Of(it.Thread, facts), string(it.Status), it.Workflow, app.TimeText(it.Since, now),
			app.TitleText(it.Title, nil))
		t.Headed = false
		w.Table(t)
		w.Values("  ", term.FirstLine(asks, most), "  ", it.Command)
	}
}

// importProgram imports the original's data. It is a separate program because it links SQLite, which no other
// command needs.
const importProgram = "uwf-import-original"

// importOriginalCommand runs the import program, found next to uwf or in PATH, and exits with its status.
func (a commands) importOriginalCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "import-original", Usage: "import data of the TypeScript version",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ocas", Usage: "`DIR` nodes and variables of that version (default ~/.ocas)"},
			&ucli.StringFlag{Name: "uwf", Usage: "`DIR` config and older index of that version (default ~/.uwf)"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only print what would be imported"},
		},
	}, a.importOriginal)
}

func (a commands) importOriginal(ctx context.Context, c *ucli.Context) error {
	program, err := proc.Beside(a.Env.Exe, importProgram, a.Env.Dir, a.Env.Environ)
	if err != nil {
		return cmdline.NotFound(importProgram+" is not installed",
			"go install github.com/united-workforce/uwf/cmd/"+importProgram+"@latest")
	}
	return a.runProgram(ctx, program, append(a.globalArgs(), typedFlags(c)...), a.Env.Stdin, nil)
}

// runProgram replaces this process by one of our programs and exits with its status. end asks it to stop; nil
// sends an interrupt.
func (a commands) runProgram(ctx context.Context, program string, args []string, stdin io.Reader, end func() error) error {
	child := exec.CommandContext(ctx, program, args...)
	child.Dir, child.Env = a.Env.Dir, a.Env.Environ
	child.Stdin, child.Stdout, child.Stderr = stdin, terminal.ForChild(a.Env.Stdout), terminal.ForChild(a.Env.Stderr)
	// Ask it to stop instead of killing it, so that it can finish what it has begun.
	child.Cancel = end
	if end == nil {
		child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	}
	err := child.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() >= 0 {
		a.Exit = failed.ExitCode() // it has printed the reason
		return nil
	}
	if err != nil {
		return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("run %s: %v", program, err), Err: err}
	}
	return nil
}

// globalArgs returns the global flags that precede the command.
func (a commands) globalArgs() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--home", a.Flags.Home}, {"--store", a.Flags.Store}, {"--format", a.Flags.Format},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	return args
}

// typedFlags returns the command's own flags, for a program that has the same ones.
func typedFlags(c *ucli.Context) (args []string) {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && c.String(name) != "" {
			args = append(args, "--"+name+"="+c.String(name))
		}
	}
	return args
}

func (a commands) webCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "web", Usage: "show threads in a browser",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "actions", Usage: "let users answer, continue, stop and fork threads"},
			&ucli.StringFlag{Name: "port", Usage: "`PORT` port on localhost (default a free one)"},
			&ucli.StringFlag{Name: "listen", Usage: "`ADDR` listen address such as 0.0.0.0:8443; needs a token and TLS"},
			&ucli.StringFlag{Name: "token-file", Usage: "`FILE` sign-in token; only you may have read access to it"},
			&ucli.StringFlag{Name: "tls-cert", Usage: "`FILE` TLS certificate file (PEM)"},
			&ucli.StringFlag{Name: "tls-key", Usage: "`FILE` TLS private key file (PEM)"},
			&ucli.StringFlag{Name: "socket", Usage: "`PATH` Unix socket for a TLS proxy; needs --token-file and --address"},
			&ucli.StringFlag{Name: "address", Usage: "`URL` public address of the proxy"},
		},
	}, a.web)
}

func (a commands) web(ctx context.Context, c *ucli.Context) error {
	program, err := proc.Beside(a.Env.Exe, webcall.Program, a.Env.Dir, a.Env.Environ)
	if err != nil {
		return cmdline.NotFound(webcall.Program+" is not installed", "go install github.com/united-workforce/uwf/cmd/"+webcall.Program+"@latest")
	}
	if _, err := a.Dirs(); err != nil { // reports a problem with the home
		return err
	}
	args := append(a.globalArgs(), append(typedFlags(c), "--until-stdin-ends")...)
	// Nothing is written to the pipe: it closes when this process exits.
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	err = a.runProgram(ctx, program, args, read, write.Close)
	if ctx.Err() != nil { // Ctrl-C is the normal way to stop it
		return nil
	}
	_ = write.Close()
	return err
}

func (a commands) remoteCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "remote", Usage: "manage remotes: directories, machines or databases that hold threads",
		Subcommands: append(remotes.Commands{App: a.App}.Named(),
			a.Leaf(ucli.Command{
				Name: "serve", ArgsUsage: "<directory>", Usage: "serve a remote on stdin and stdout, for ssh",
			}, a.remoteServe),
		),
	})
}

func (a commands) remoteServe(ctx context.Context, c *ucli.Context) error {
	if terminal.Is(a.Env.Stdout) {
		return cmdline.UsageError("stdin or stdout is a terminal; a remote client runs this command", "uwf remote add <name> host:path")
	}
	dir, err := home.Absolute(a.Env, c.Args().First())
	if err != nil {
		return err
	}
	err = wire.Serve(ctx, a.Env.Stdin, a.Env.Stdout, func(ctx context.Context, h wire.Hello) (remote.Remote, error) {
		return storeremote.Open(ctx, dir, storeremote.Options{Hash: h.Hash, Program: "uwf " + cmdline.Version(), Now: a.Env.Now})
	})
	var wrong *remote.FaultError
	if errors.As(err, &wrong) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "the client: " + wrong.Error(), Err: err}
	}
	return err
}

func (a commands) schemaCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "schema", Usage: "print JSON Schemas of stored nodes, workflow files and config",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "hash", ArgsUsage: "<kind>",
				Usage: "print the hash of a kind's schema",
			}, a.schemaHash),
			a.Leaf(ucli.Command{
				Name: "show", ArgsUsage: "<kind>", Usage: "print the JSON Schema of a kind",
			}, a.schemaShow),
			a.Leaf(ucli.Command{
				Name: "workflow", Usage: "print the JSON Schema of workflow files, for editors",
			}, a.editorSchema(protocol.EditWorkflow)),
			a.Leaf(ucli.Command{
				Name: "config", Usage: "print the JSON Schema of config.yaml, for editors",
			}, a.editorSchema(protocol.EditConfig)),
		},
	})
}

func typeNames() (names []string) {
	for _, t := range protocol.Types() {
		names = append(names, t.String())
	}
	return names
}

func typeOf(word string) (protocol.Type, error) {
	word = strings.TrimPrefix(word, protocol.TitlePrefix)
	t, ok := protocol.ParseType(word)
	if ok && t.Known() {
		return t, nil
	}
	return t, cmdline.NotFound("no such kind: "+word, cmdline.Choices("", word, typeNames())...)
}

func (a commands) schemaHash(ctx context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	h := s.Kinds().Schema(t).Hash
	return a.Printf(map[string]any{"kind": t.Kind, "version": t.Version, "title": t.Title(), "hash": h}, "%v\n", h)
}

func (a commands) schemaShow(_ context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.Env.Stdout.Write(protocol.SchemaJSON(t))
	return err
}

func (a commands) editorSchema(f protocol.EditorFile) func(context.Context, *ucli.Context) error {
	return func(context.Context, *ucli.Context) error {
		_, err := a.Env.Stdout.Write(protocol.EditorSchema(f))
		return err
	}
}

// paged lists the commands with potentially long output for reading.
func paged() []string {
	return []string{
		"thread list", "thread show", "thread steps", "thread read", "thread step-details", "thread diff", "thread graph",
		"step list", "step show", "step read", "step turns", "workflow show", "workflow diff", "workflow list",
		"log show", "log list",
	}
}

// withPager makes those commands use a pager for output taller than the terminal. Growing output (--live,
// --follow) is not paged.
func (a commands) withPager(commands []*ucli.Command, path string) {
	for _, c := range commands {
		at := strings.TrimSpace(path + " " + c.Name)
		a.withPager(c.Subcommands, at)
		if !slices.Contains(paged(), at) {
			continue
		}
		action := c.Action
		c.Action = func(cc *ucli.Context) error {
			if cc.Bool("live") || cc.Bool("follow") {
				return action(cc)
			}
			done := a.page()
			return errors.Join(action(cc), done())
		}
	}
}

// page inserts a pager before the terminal: UWF_PAGER, or else PAGER, or else less. Empty variables count as
// unset; "cat" and missing programs mean no pager. done flushes the output and waits for the pager.
func (a commands) page() (done func() error) {
	screen, ok := a.Env.Stdout.(*terminal.Writer)
	_, height := terminal.Size(a.Env.Stdout)
	words := strings.Fields(cmp.Or(a.Env.Get("UWF_PAGER"), a.Env.Get("PAGER"), "less"))
	if !ok || height == 0 || len(words) == 0 || words[0] == "cat" || a.Env.Get("TERM") == "dumb" {
		return func() error { return nil }
	}
	program, err := proc.LookPath(words[0], a.Env.Dir, a.Env.Environ)
	if err != nil {
		return func() error { return nil }
	}
	p := &pager{out: terminal.ForChild(screen), height: height, cmd: exec.Command(program, words[1:]...)}
	p.cmd.Env = a.Env.With("LESS", cmp.Or(a.Env.Get("LESS"), "FRX")).Environ
	p.cmd.Stdout, p.cmd.Stderr = p.out, terminal.ForChild(a.Env.Stderr)
	a.Env.Stdout = screen.Through(p)
	return func() error {
		a.Env.Stdout = screen
		return p.close()
	}
}

// pager buffers output until it is taller than the screen and then starts a program. If that fails, the text
// goes to the terminal. Either way the text has been sanitized: less interprets escape sequences as well.
type pager struct {
	out    io.Writer // the terminal
	height int
	cmd    *exec.Cmd

	held  []byte
	lines int
	tried bool           // starting the program
	pipe  io.WriteCloser // the program's stdin, or nil if it does not run
}

func (p *pager) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	p.lines += strings.Count(string(b), "\n")
	if p.lines < p.height {
		return len(b), nil
	}
	if !p.tried {
		p.tried = true
		if pipe, err := p.cmd.StdinPipe(); err == nil && p.cmd.Start() == nil {
			p.pipe = pipe
		}
	}
	return len(b), p.flush()
}

// flush writes the buffered output. A pager closed early is not an error.
func (p *pager) flush() (err error) {
	if p.pipe != nil {
		_, _ = p.pipe.Write(p.held)
	} else {
		_, err = p.out.Write(p.held)
	}
	p.held = p.held[:0]
	return err
}

func (p *pager) close() error {
	if p.pipe == nil {
		return p.flush()
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the pager's exit status is irrelevant
	return nil
}
