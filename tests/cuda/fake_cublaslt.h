// A cuBLASLt of the tests' own: a shared library of that name whose products answer what a test
// asks for. The control is found in the opened library by its name, `fake_cublaslt_control`.

#ifndef GPUSHARE_TESTS_CUDA_FAKE_CUBLASLT_H_
#define GPUSHARE_TESTS_CUDA_FAKE_CUBLASLT_H_

namespace gpushare::cuda {

struct FakeCublasLtControl {
  int algorithms = 4;  // that the heuristic finds
  int answer = 0;      // cublasStatus_t of a product with an algorithm before `first_good`
  int first_good = 0;
  int products = 0;         // calls since the test looked
  int first_algorithm = 0;  // of them
  // The handles of the last look for algorithms and of the last product.
  const void* plan_handle = nullptr;
  const void* product_handle = nullptr;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_FAKE_CUBLASLT_H_
