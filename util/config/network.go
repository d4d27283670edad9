package config

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Network returns what a role can reach. Its own entry in networkOverrides counts first, then the
// sandbox of the agent that plays it; alias "" is for a role that is a command.
func Network(c protocol.Config, alias, workflow, role string) protocol.Network {
	box := CommandSandbox(c)
	if alias != "" {
		box = Sandbox(c, alias)
	}
	for _, n := range []protocol.Network{c.NetworkOverrides[workflow+"."+role], box.Network} {
		if n != nil {
			return n
		}
	}
	return protocol.Network{protocol.NetworkAll}
}

// Reaches says what a role can reach, to follow what it may do; "": everything.
func Reaches(n protocol.Network) string {
	switch {
	case n.All():
		return ""
	case len(n.Hosts()) == 0:
		return "; its commands reach no network"
	}
	return "; its commands reach " + n.String()
}

func networkWords() []string { return []string{protocol.NetworkAll, protocol.NetworkNone} }

// network checks what a list, or a word in its place, says.
func (d *decoder) network(n *yamldoc.Node, v protocol.Network, path string) {
	switch {
	case n.Kind == yamldoc.Scalar && len(v) == 1 && v[0] != "" && !slices.Contains(networkWords(), v[0]):
		remedy := "a list, such as [api.example.com]"
		if near := suggest.Nearest(v[0], networkWords(), 1); len(near) > 0 {
			remedy = nearest(v[0], networkWords())
		} else if _, err := hostlist.Parse(v); err == nil {
			remedy = "write [" + v[0] + "]"
		}
		d.add(n.Pos, remedy, "%s must be %s or a list of hosts", path, quoted(networkWords(), ", "))
	case n.Kind == yamldoc.Sequence && len(n.Items) == 0:
		d.add(n.Pos, "write none", "%s is an empty list", path)
	case n.Kind == yamldoc.Sequence:
		for i, host := range v {
			d.host(n.Items[i], host, path)
		}
	}
}

func (d *decoder) host(n *yamldoc.Node, host, path string) {
	_, err := hostlist.Parse([]string{host})
	word := slices.Contains(networkWords(), host)
	if n.Kind != yamldoc.Scalar || n.Text != "" && host == "" || err == nil && !word {
		return // or it is reported already
	}
	bare := host
	if _, rest, ok := strings.Cut(host, "://"); ok {
		bare, _, _ = strings.Cut(rest, "/")
	} else if rest, ok := strings.CutPrefix(host, "*"); ok && rest != "" {
		bare = "*." + strings.TrimPrefix(rest, ".")
	}
	remedy := "such as example.com, example.com:8080, *.example.com or example.com:*"
	if host == "*" {
		word, bare = true, protocol.NetworkAll
	}
	if word {
		remedy = "write " + bare + " without a list"
	} else if _, err := hostlist.Parse([]string{bare}); err == nil {
		remedy = "write " + bare
	}
	d.add(n.Pos, remedy, "%s has an entry that is no host", path)
}

// networks checks that a sandbox holds what can be reached, and that roles are named in full.
func (k checker) networks() {
	held := func(box protocol.SandboxConfig, at ...string) {
		if box.Mode == protocol.SandboxNone && !box.Network.All() {
			path := strings.Join(at, ".")
			k.add(k.at(at), "remove it, or set "+path+".mode: required", "%s.network needs a sandbox, and mode is none", path)
		}
	}
	if k.c.Sandbox != nil {
		held(*k.c.Sandbox, "sandbox")
	}
	if k.c.Commands != nil && k.c.Commands.Sandbox != nil {
		held(CommandSandbox(k.c), "commands", "sandbox")
	}
	for alias, a := range k.c.Agents {
		if a.Sandbox != nil {
			held(Sandbox(k.c, alias), "agents", alias, "sandbox")
		}
	}
	for name := range k.c.NetworkOverrides {
		if i := strings.LastIndexByte(name, '.'); i <= 0 || i == len(name)-1 {
			k.add(k.at([]string{"networkOverrides", name}), "it must be <workflow>.<role>", "networkOverrides has the unknown key %q", name)
		}
	}
}
