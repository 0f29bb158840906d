/* step TID WAITS OUT: step a thread until it has gone to sleep in epoll_wait WAITS times, and write its registers before
   each instruction to OUT. x86-64 Linux. Ends by itself after MOST instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { SYSCALL = 0x050f, EPOLL_WAIT = 232, EPOLL_PWAIT = 281, MOST = 3000000 };

int main(int count, char **words) {
    if (count != 4) return 2;
    int thread = atoi(words[1]), waits = atoi(words[2]), state;
    FILE *out = fopen(words[3], "wb");
    if (!out || ptrace(PTRACE_SEIZE, thread, 0, 0) || ptrace(PTRACE_INTERRUPT, thread, 0, 0)) return 1;
    waitpid(thread, &state, __WALL);
    puts("stopped");
    fflush(stdout);
    for (long steps = 0; waits > 0 && steps < MOST; steps++) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0) || waitpid(thread, &state, __WALL) < 0 || WIFEXITED(state)) return 1;
        ptrace(PTRACE_GETREGS, thread, 0, &registers);
        fwrite(&registers, sizeof registers, 1, out);
        long code = ptrace(PTRACE_PEEKTEXT, thread, registers.rip, 0);
        if ((code & 0xffff) == SYSCALL && (registers.rax == EPOLL_WAIT || registers.rax == EPOLL_PWAIT)) waits--;
    }
    fclose(out);
    return waits > 0 || ptrace(PTRACE_DETACH, thread, 0, 0);
}
