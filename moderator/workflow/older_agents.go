package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// A workflow says nothing about who plays its roles; that is configuration. The
// agents that a file of the older form names are answered with the lines for
// config.yaml that do the same.

// player is a role and the command line that is to play it.
type player struct{ role, command string }

// readPlayers lists the roles for which the file names an agent, in its order.
func (d *draft) readPlayers() []player {
	byDefault := ""
	if n := d.defaultAgent; n != nil && !isNull(n) {
		byDefault, _ = d.text(n, "defaultAgent")
	}
	overrides := d.overrides()
	var list []player
	for _, name := range d.roleNames {
		command, ok := overrides[name]
		if !ok {
			command = byDefault
		}
		if strings.TrimSpace(command) != "" {
			list = append(list, player{name, command})
		}
	}
	return list
}

func (d *draft) overrides() map[string]string {
	overrides := map[string]string{}
	n := d.agentOverrides
	if n == nil || isNull(n) || isUnread(n) {
		return overrides
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "", "agentOverrides must be a mapping from role to command, but this is %s", kindOf(n))
		return overrides
	}
	for _, e := range n.Entries {
		if d.roleByName[e.Key] == nil {
			d.add(e.Pos, d.didYouMean(e.Key, d.roleNames, "the roles are"), "agentOverrides names %s, but there is no such role", quote(e.Key))
			continue
		}
		if command, ok := d.text(e.Value, "agentOverrides of "+quote(e.Key)); ok {
			overrides[e.Key] = command
		}
	}
	return overrides
}

// olderNotices says once what has become of a file of the older form.
func (d *draft) olderNotices() []string {
	if !d.older {
		return nil
	}
	notices := []string{d.names[0] + " is written in the older form of workflows; it is read and stored in the present one, " +
		"which `uwf workflow show " + d.name.text + " --format yaml` prints"}
	if len(d.players) > 0 {
		notices = append(notices, "who plays a role is configuration, so defaultAgent and agentOverrides are left out; "+
			"these lines in config.yaml do the same:\n"+configLines(d.name.text, d.players))
	}
	return notices
}

// configLines writes the agents and overrides of config.yaml.
func configLines(workflow string, players []player) string {
	aliases := map[string]string{} // by command
	var agents, overrides strings.Builder
	for _, p := range players {
		if aliases[p.command] == "" {
			alias := aliasFor(p.command, aliases)
			aliases[p.command] = alias
			words := strings.Fields(p.command)
			fmt.Fprintf(&agents, "  %s: {command: %s", plain(alias), plain(words[0]))
			for i, word := range words[1:] {
				lead := ", "
				if i == 0 {
					lead = ", args: ["
				}
				agents.WriteString(lead + plain(word))
			}
			if len(words) > 1 {
				agents.WriteByte(']')
			}
			agents.WriteString("}\n")
		}
		fmt.Fprintf(&overrides, "    %s: %s\n", plain(p.role), plain(aliases[p.command]))
	}
	return "agents:\n" + agents.String() + "agentOverrides:\n  " + plain(workflow) + ":\n" + strings.TrimRight(overrides.String(), "\n")
}

// aliasFor makes a short name of a command: "bunx uwf-cursor" is "cursor".
func aliasFor(command string, taken map[string]string) string {
	words := strings.Fields(command)
	name := words[0]
	for _, word := range words {
		if base := path.Base(word); strings.HasPrefix(base, "uwf-") && base != "uwf-" {
			name = word
			break
		}
	}
	name = strings.TrimPrefix(path.Base(name), "uwf-")
	alias := name
	for n := 2; slices.Contains(slices.Collect(maps.Values(taken)), alias); n++ {
		alias = fmt.Sprintf("%s-%d", name, n)
	}
	return alias
}

// plain writes a word for YAML: in quotes unless it cannot be taken for anything
// else.
func plain(word string) string {
	if wordPattern().MatchString(word) && !slices.Contains([]string{"true", "false", "null"}, strings.ToLower(word)) {
		return word
	}
	text, err := json.Marshal(word)
	if err != nil { // texts always encode
		return word
	}
	return string(text)
}
