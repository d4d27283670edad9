package proc

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// scans bounds how often killSession looks again for processes that were
// started while it killed.
const scans = 10

// killSession kills every process of the session that the group's leader leads,
// whatever its group.
func (g group) killSession() error {
	for range scans {
		pids, err := living(func(s stat) bool { return s.session == int(g) })
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return os.NewSyscallError("kill", err)
			}
		}
	}
	return nil
}

// gone reports whether nobody is left but zombies, which remain where init does
// not reap, as in many containers.
func (g group) gone() bool {
	if err := syscall.Kill(-int(g), 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	pids, err := living(func(s stat) bool { return s.group == int(g) })
	return err == nil && len(pids) == 0
}

// living lists the processes that match and are not zombies.
func living(match func(stat) bool) ([]int, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var living []int
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		if s, ok := parseStat(string(text)); ok && match(s) && s.state != "Z" && s.state != "X" {
			living = append(living, pid)
		}
	}
	return living, nil
}

// look reads a part of /proc/<pid>/stat. A birth is in ticks since the machine began.
func look(pid int) stat {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}
	}
	s, _ := parseStat(string(text))
	return s
}

// parseStat reads "pid (name) state parent group session …". The name may hold
// anything, also brackets.
func parseStat(text string) (stat, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return stat{}, false
	}
	parent, err0 := strconv.Atoi(fields[1])
	group, err1 := strconv.Atoi(fields[2])
	session, err2 := strconv.Atoi(fields[3])
	s := stat{state: fields[0], parent: parent, group: group, session: session}
	const startTime = 19
	if len(fields) > startTime {
		s.birth = fields[startTime]
	}
	return s, errors.Join(err0, err1, err2) == nil
}

// processes lists the ids of all processes.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
