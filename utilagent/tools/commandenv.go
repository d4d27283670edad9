package tools

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

// quiet keeps programs from waiting for a person or drawing for one.
var quiet = []string{
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "LESS=-R", "TERM=dumb", "NO_COLOR=1",
	"GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive", "PIP_PROGRESS_BAR=off", "TQDM_DISABLE=1",
}

// CommandEnv is the environment for commands. It leaves out secrets, recognised by a
// variable's name or value, and whatever identifies the agent's own step, so that no command
// can act as the agent. Variables that pass names are handed on all the same.
func CommandEnv(environ []string, secrets *secret.Set, pass []string) []string {
	var env []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		guarded := secret.Guarded(name, value) || secrets.Holds(value) || LeadsOut(name)
		if !ownStep(name) && (!guarded || slices.Contains(pass, name)) {
			env = append(env, kv)
		}
	}
	return append(env, quiet...)
}

// LeadsOut reports whether a variable names a socket or a program outside of the confinement
// of commands: what listens there acts for the user, unconfined.
func LeadsOut(name string) bool {
	switch name {
	case "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DOCKER_HOST",
		"CONTAINER_HOST", "PODMAN_SOCK", "TMUX", "TMUX_PANE", "STY", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "XDG_RUNTIME_DIR",
		"GNOME_KEYRING_CONTROL", "SESSION_MANAGER", "ICEAUTHORITY", "NOTIFY_SOCKET", "LISTEN_FDS", "NVIM", "NVIM_LISTEN_ADDRESS", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET",
		"PULSE_SERVER", "LIBVIRT_DEFAULT_URI", "REMOTE_CONTAINERS_IPC":
		return true
	}
	for _, prefix := range []string{"GPG_", "VSCODE_", "PIPEWIRE_", "I3SOCK", "SWAYSOCK", "HYPRLAND_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func ownStep(name string) bool {
	switch name {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvThread, protocol.EnvRole, protocol.EnvPrompt, protocol.EnvLimitBase:
		return true
	}
	return false
}
