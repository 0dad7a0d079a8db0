package e2e

import "syscall"

// childAttr has the kernel end a child whose test binary was killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
