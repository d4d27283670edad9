package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// maxScript bounds a script, in bytes: it is a single program argument, which Linux limits to 128 KiB.
const maxScript = 100 << 10

const removeNUL = "remove the NUL character"

// shells maps a shell's name to the words before its script.
func shells() map[string][]string {
	return map[string][]string{"sh": nil, "bash": {"bash", "-eo", "pipefail", "-c"}, "python3": {"python3", "-c"},
		"node": {"node", "-e"}, "bun": {"bun", "-e"}}
}

// ShellName returns the name of the shell that starts with words, or "".
func ShellName(words []string) string {
	for name, known := range shells() {
		if slices.Equal(words, known) {
			return name
		}
	}
	return ""
}

// readScript reads a command that is a single text.
func (d *draft) readScript(r *roleDraft, script string, shell *yamldoc.Node, what string) {
	r.role.Script, d.language = script, protocol.Language3
	switch {
	case strings.TrimSpace(script) == "":
		d.Add(r.run.Pos, exampleRun, "run of %s has no program", what)
		return
	case len(script) > maxScript:
		d.Add(r.run.Pos, "put it in a file: run: [sh, ./script.sh]",
			"run of %s has %d bytes; the limit for a script is %d", what, len(script), maxScript)
		return
	case strings.ContainsRune(script, 0):
		d.Add(r.run.Pos, removeNUL, "run of %s has a NUL character, which commands cannot receive", what)
		return
	}
	if shell == nil || isUnread(shell) || isNull(shell) {
		return
	}
	name, named := textOf(shell)
	words, known := shells()[name]
	switch {
	case named && known:
		r.role.Shell = words
	case shell.Kind == yamldoc.Sequence && len(shell.Items) > 0:
		r.role.Shell = d.readWords(shell, what)
	default:
		d.Add(shell.Pos, "use one of "+strings.Join(slices.Sorted(maps.Keys(shells())), ", ")+", or a command that takes the script: [perl, -e]",
			"unknown shell in %s", what)
	}
}

// readEnv reads a command's environment variables.
func (d *draft) readEnv(r *roleDraft, n *yamldoc.Node, what string) {
	if n == nil || isUnread(n) || isNull(n) {
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, `env: {TAG: "{{tag}}"}`, "env of %s must be a mapping from name to string, not %s", what, kindOf(n))
		return
	}
	r.role.Env, r.env = map[string]string{}, map[string]*yamldoc.Node{}
	for _, e := range n.Entries {
		if problem, remedy := envProblem(e.Key); problem != "" {
			d.Add(e.Pos, remedy, "env of %s: the name %s %s", what, quote(e.Key), problem)
			continue
		}
		value, ok := asWord(e.Value)
		if !ok {
			if value, ok = d.text(e.Value, "env["+e.Key+"] of "+what); !ok {
				continue
			}
		}
		if strings.ContainsRune(value, 0) {
			d.Add(e.Value.Pos, removeNUL, "env[%s] of %s has a NUL character, which commands cannot receive", e.Key, what)
		}
		r.role.Env[e.Key], r.env[e.Key] = value, e.Value
		d.language = protocol.Language3
		d.noteSteering(e, value, what)
	}
}

// envProblem describes a problem with the name of a variable, "" if it is valid.
func envProblem(name string) (problem, remedy string) {
	switch upper := strings.ToUpper(name); {
	case strings.HasPrefix(upper, "UWF_"):
		return "is reserved for uwf", "use a name that does not start with UWF_"
	case !envName().MatchString(name):
		return "is not a valid variable name", "use letters, digits and _, starting with a letter or _"
	}
	return "", ""
}

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// steers matches variables that affect which programs run, or how.
var steers = lazyregexp.New(`^(PATH|LD_.*|DYLD_.*|GIT_.*|.*_OPTIONS|BASH_ENV|ENV)$`)

// noteSteering warns about such a variable if an answer can set it.
func (d *draft) noteSteering(e yamldoc.Entry, value, what string) {
	t, err := mustache.Parse(value)
	if err != nil || !steers().MatchString(e.Key) {
		return
	}
	if slices.ContainsFunc(t.Tags(), func(tag mustache.Tag) bool {
		return len(tag.Path) == 0 || tag.Path[0] != protocol.InputsVariable
	}) {
		d.Note(func() yamldoc.Pos { return e.Pos }, "env[%s] of %s controls programs: its value can run any "+
			"command as you",
			e.Key, what)
	}
}

// noteIncluded warns about a template in a word that comes from an included file.
func (d *draft) noteIncluded(r *roleDraft, i int, n *yamldoc.Node) {
	if !d.Included(n.Pos.Line) || !strings.Contains(r.role.Run[i], "{{") || !d.once(fmt.Sprint("included ", r.name, i)) {
		return
	}
	d.Note(func() yamldoc.Pos { return d.Nth(n.Pos, "{{", 0) }, "run[%d] of role %s is a template, even in a "+
		"separate file; to keep {{…}} as it is, write run as one text", i, quote(r.name))
}

// scriptTag matches what would be a variable in a template.
var scriptTag = lazyregexp.New(`\{\{\{?&?\s*(\$?[\pL_][\pL\pN_.-]*)\s*\}?\}\}`)

// checkScript reports text that looks like a variable available to the script, because uwf doesn't replace
// it. An included file can contain it intentionally.
func (d *draft) checkScript(r *roleDraft, from answer) {
	if r.role.Script == "" {
		return
	}
	included := d.Included(r.run.Pos.Line)
	for _, m := range scriptTag().FindAllStringSubmatchIndex(r.role.Script, -1) {
		name := r.role.Script[m[2]:m[3]]
		if d.Full() || !d.exists(strings.Split(name, "."), from) || !d.once("script "+r.name+" "+name) {
			continue
		}
		tag, variable := r.role.Script[m[0]:m[1]], envNameOf(name)
		at := func() yamldoc.Pos { return d.Nth(r.run.Pos, tag, 0) }
		problem := fmt.Sprintf("run of role %s is a script, so %s is not replaced", quote(r.name), tag)
		remedy := fmt.Sprintf(`env: {%s: "{{%s}}"}, and "$%[1]s" in the script`, variable, name)
		if included {
			d.Note(at, "%s; to use a variable, write %s", problem, remedy)
		} else {
			d.Add(at(), remedy, "%s", problem)
		}
	}
}

// exists reports whether a variable exists in a template over an answer.
func (d *draft) exists(path []string, from answer) bool {
	switch {
	case path[0] == protocol.InputsVariable:
		return len(path) > 1 && slices.ContainsFunc(d.inputs, func(i *inputDraft) bool { return i.name == path[1] })
	case isGlobal(path[0]), d.isEarlier(path, from):
		return true
	}
	_, known := find([]fields{from.fields}, path)
	return known && !from.skip
}

// envNameOf derives a variable name from a template name.
func envNameOf(name string) string {
	upper := notOfName().ReplaceAllString(strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:]), "_")
	return cmp.Or(strings.Trim(upper, "_0123456789"), "VALUE")
}

// notOfName matches characters that aren't allowed in a variable name.
var notOfName = lazyregexp.New(`[^A-Z0-9]+`)
