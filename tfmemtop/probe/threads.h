// The probe's threads in the script's process.

#ifndef TFMEMTOP_PROBE_THREADS_H_
#define TFMEMTOP_PROBE_THREADS_H_

#include <pthread.h>
#include <signal.h>

namespace {

// Starts a thread of the probe, to which no signal of the script's goes.
bool StartThread(void* (*run)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  // The thread inherits this mask.
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error == 0;
}

}  // namespace

#endif  // TFMEMTOP_PROBE_THREADS_H_
