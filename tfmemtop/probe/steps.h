// Finds the steps of a training in the events that TensorFlow records.
//
// A step is a call of a `tf.function` from Python (`EagerExecute` with `is_func=1`), or a session's run (`SessionRun`),
// in which gradients are computed or variables updated. At this level TensorFlow does not record operations that it
// takes to be quick: so the names of operations that allocate are used, too. A loop of eager operations has no such
// event: there a step is the sequence of operations that repeats.

#ifndef TFMEMTOP_PROBE_STEPS_H_
#define TFMEMTOP_PROBE_STEPS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Whether optimizers change variables with operations of this type, or the operation may contain such operations.
inline bool Updates(std::string_view type) {
  for (std::string_view known : {"ResourceApply", "ResourceSparseApply", "Apply", "SparseApply", "AssignAdd", "AssignSub",
                                 "ResourceScatter", "XlaLaunch", "_XlaRun", "XlaLocalLaunch"}) {
    if (type.substr(0, known.size()) == known) return true;
  }
  return false;
}

// Whether an operation of this name computes gradients, as TensorFlow names those.
inline bool IsGradient(std::string_view name) {
  return name.find("gradient_tape/") != name.npos || name.find("gradients/") != name.npos;
}

// The Python name of a function: `train_step` for TensorFlow's `__inference_train_step_48`.
inline std::string_view PlainName(std::string_view name) {
  constexpr std::string_view prefix = "__inference_";
  if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  const size_t digits = name.find_last_not_of("0123456789");
  if (digits != name.npos && digits + 1 < name.size() && name[digits] == '_') name = name.substr(0, digits);
  return name;
}

class Steps {
 public:
  struct Call {
    int64_t begin, end;
  };

  explicit Steps(std::string wanted, size_t enough) : wanted_(std::move(wanted)), enough_(enough) {}

  // The next four functions note an event: a call of a function or a session's run, a call of an eager operation, the
  // execution of an operation, and an allocation for an operation.
  void Called(std::string_view function, Call call) {
    const std::string name(PlainName(function).substr(0, 255));
    auto found = calls_.find(name);
    if (found == calls_.end()) {
      // Functions that were called once are removed: such a function is no step of a training, or will be called again.
      for (auto one = calls_.begin(); calls_.size() >= kFunctions && one != calls_.end();) {
        one = one->second.size() == 1 ? calls_.erase(one) : std::next(one);
      }
      if (calls_.size() >= kFunctions) return;
      found = calls_.emplace(name, std::vector<Call>()).first;
    }
    if (found->second.size() < kMost) found->second.push_back(call);
  }

  void Eagerly(std::string_view type, Call call) {
    if (operations_.size() >= kMost) return;
    operations_.push_back({call, std::hash<std::string_view>()(type), Updates(type)});
  }

  void Executed(std::string_view type, int64_t at) {
    if (Updates(type) && updates_.size() < kMost) updates_.push_back(at);
  }

  void Allocated(std::string_view operation, int64_t at) {
    if (IsGradient(operation) && updates_.size() < kMost) updates_.push_back(at);
  }

  // Whether there are as many whole steps as wanted. With `last`, no more events follow, so fewer steps are taken, too.
  bool Enough(bool last) {
    if (!std::is_sorted(updates_.begin(), updates_.end())) std::sort(updates_.begin(), updates_.end());
    const std::vector<Call>* best = nullptr;
    double most = -1;
    for (const auto& [name, calls] : calls_) {
      int64_t total = 0;
      for (const Call& call : calls) total += call.end - call.begin;
      const size_t training = std::count_if(calls.begin(), calls.end(), [&](Call call) { return Trains(call); });
      // Where no call is seen to train, as under XLA, the function that is called most counts, if it runs at least half
      // of the time.
      const bool busy = name == wanted_ && !calls.empty() && 2 * total >= calls.back().end - calls[0].begin;
      const bool alone = training == 0 && busy;
      const bool done = training >= enough_ || calls.size() >= (alone ? 1 : kWithoutUpdates) * enough_;
      // When a window ends, functions that train come first, then the function that is called most, then the longest.
      const double weight = (training > 0 ? 1e6 : 1) * (name == wanted_ ? 1e3 : 1) * (total + 1.0);
      if ((done || last) && weight > most) {
        most = weight;
        best = &calls;
        function_ = name;
      }
    }
    if (best != nullptr) {
      steps_ = *best;
      return true;
    }
    return Repeats(last);
  }

  const std::vector<Call>& steps() const { return steps_; }
  const std::string& function() const { return function_; }

 private:
  struct Operation {
    Call call;
    size_t name;
    bool updates;
  };

  static constexpr size_t kMost = 1 << 17, kFunctions = 256, kWithoutUpdates = 10, kShortest = 2;

  bool Trains(Call call) const {
    auto found = std::lower_bound(updates_.begin(), updates_.end(), call.begin);
    return found != updates_.end() && *found <= call.end;
  }

  // Looks for the shortest sequence of eager operations that makes up, by repetition, the newer half of them, or all of
  // them if one step is enough. This is done only now and then, since it reads all the operations.
  bool Repeats(bool last) {
    const size_t count = operations_.size();
    if (count < 2 * kShortest || (!last && count < looked_ + looked_ / 4 + 16)) return false;
    looked_ = count;
    const size_t from = enough_ > 1 ? count / 2 : 0, length = count - from;
    const Operation* part = operations_.data() + from;
    std::vector<uint32_t> border(length + 1, 0);  // the prefix function of Knuth, Morris and Pratt
    for (size_t i = 1, k = 0; i < length; i++) {
      while (k > 0 && part[i].name != part[k].name) k = border[k];
      if (part[i].name == part[k].name) k++;
      border[i + 1] = k;
    }
    const size_t period = length - border[length];
    if (period < kShortest || length < 2 * period) return false;
    // A step begins after the last of the updates in a period.
    size_t first = length;
    for (size_t i = 0; i < period; i++) {
      if (part[i].updates && !part[(i + 1) % period].updates) first = i + 1;
    }
    if (first == length) return false;
    steps_.clear();
    function_.clear();
    for (; first + period <= length; first += period) {
      steps_.push_back({part[first].call.begin, part[first + period - 1].call.end});
    }
    return last ? !steps_.empty() : steps_.size() >= enough_;
  }

  const std::string wanted_;
  const size_t enough_;
  std::map<std::string, std::vector<Call>> calls_;
  std::vector<Operation> operations_;
  std::vector<int64_t> updates_;
  std::vector<Call> steps_;
  std::string function_;
  size_t looked_ = 0;
};

}  // namespace

#endif  // TFMEMTOP_PROBE_STEPS_H_
